//! Tests of the checks on a call's arguments.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_catalog::{Catalog, Entry, Origin};

fn entry() -> Entry {
    let text = r#"
;;; name = "x"
;;; description = "d"
;;; [[args]]
;;; name = "from"
;;; type_hint = "url"
;;; description = "d"
;;; [[args]]
;;; name = "note"
;;; description = "d"
;;; [[args]]
;;; name = "n"
;;; type_hint = "int"
;;; description = "d"
;;; default = 7
;;; [[args]]
;;; name = "mode"
;;; description = "d"
;;; default = "all"
;;; [[args]]
;;; name = "deep"
;;; type_hint = "bool"
;;; description = "d"
;;; default = false
;;; [[args]]
;;; name = "ratio"
;;; type_hint = "float"
;;; description = "d"
;;; default = 0.5
;;; [[args]]
;;; name = "doc"
;;; type_hint = "json"
;;; description = "d"
;;; default = "{}"
;;; [[args]]
;;; name = "to"
;;; type_hint = "path"
;;; description = "d"
;;; default = "out.txt"
0
"#;
    Entry::parse(text, Origin::File(PathBuf::from("x.wat")))
        .unwrap_or_else(|problem| panic!("{problem}"))
}

fn given(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

const URL: &str = "http://a.b/";

#[test]
fn valid_arguments_are_normalized_and_completed() {
    for (args, expected) in [
        (&[URL, ""][..], [URL, "", "7", "all", "false", "0.5", "{}", "out.txt"]),
        (
            &[" https://a.b/c ", " x "],
            ["https://a.b/c", " x ", "7", "all", "false", "0.5", "{}", "out.txt"],
        ),
        (
            &[URL, "x", " +8", "", "TRUE", "-1e3 ", "[1, 2]", "a b"],
            [URL, "x", "8", "", "true", "-1e3", "[1, 2]", "a b"],
        ),
        // An empty string can only mean that the argument is omitted.
        (&[URL, "x", "", "", "", "", "", ""], [URL, "x", "7", "", "false", "0.5", "{}", "out.txt"]),
    ] {
        assert_eq!(entry().arguments(&given(args)), Ok(given(&expected)), "{args:?}");
    }
}

#[test]
fn arguments_by_name_are_put_in_order() {
    let names = |names: &[&str]| given(names);
    for (args, by_name, expected) in [
        (&["x", URL][..], &["note", "from"][..], &[URL, "x"][..]),
        (&[URL, "one", "x"], &["mode", "note"], &[URL, "x", "7", "one"]),
        (&[URL, "x"], &[], &[URL, "x"]),
        (&[URL, "x", "true"], &["NOTE", "De-ep"], &[URL, "x", "7", "all", "true"]),
    ] {
        let found = entry().in_order(&given(args), &names(by_name));
        assert_eq!(found, Ok(given(expected)), "{args:?} {by_name:?}");
    }
    for (args, by_name, message) in [
        (&[URL, "x"][..], &["from", "note_"][..], None),
        (&[URL, "x", "1"], &["note", "kount"], Some("x error: it has no arg \"kount\"")),
        (&[URL, "x"], &["from"], Some("x error: the arg `from` is given twice")),
        (
            &[URL, "x", "y"],
            &["from", "note", "Note"],
            Some("x error: the arg `note` is given twice"),
        ),
        (&["x"], &["note"], Some("x error: required arg `from` missing or not a string")),
        (&[URL; 10], &["n"], Some("x error: takes 8 arguments, 10 given")),
    ] {
        match (entry().in_order(&given(args), &names(by_name)), message) {
            (Ok(_), None) => {}
            (Err(error), Some(message)) => {
                assert!(error.to_string().starts_with(message), "{error}");
                let all = format!("{error} {}", error.hint());
                assert!(all.contains("usage: x(from: url, note: string, "), "{all}");
            }
            (found, _) => panic!("{args:?} {by_name:?}: {found:?}"),
        }
    }
}

#[test]
fn invalid_arguments_are_errors() {
    let usage = "usage: x(from: url, note: string, n: int = 7, mode: string = \"all\", deep: bool \
                 = false, ratio: float = 0.5, doc: json = {}, to: path = \"out.txt\")";
    for (args, message, hint) in [
        (
            &[][..],
            "x error: required arg `from` missing or not a string",
            "expected an absolute URL that starts with http:// or https://; ",
        ),
        (
            &[""],
            "x error: required arg `from` missing or not a url",
            "expected an absolute URL that starts with http:// or https://, found \"\"; ",
        ),
        (
            &["/a"],
            "x error: required arg `from` missing or not a url",
            "expected an absolute URL that starts with http:// or https://, found \"/a\"; ",
        ),
        (
            &["file:///a"],
            "x error: required arg `from` missing or not a url",
            "expected an absolute URL that starts with http:// or https://, found \"file:///a\"; ",
        ),
        (&[URL], "x error: required arg `note` missing or not a string", "expected a text; "),
        (
            &[URL, "", "7.5"],
            "x error: optional arg `n` not an int",
            "expected an integer such as 42, found \"7.5\"; ",
        ),
        (
            &[URL, "", "99999999999999999999"],
            "x error: optional arg `n` not an int",
            "expected an integer such as 42, found \"99999999999999999999\"; ",
        ),
        (
            &[URL, "", "1", "", "yes"],
            "x error: optional arg `deep` not a bool",
            "expected true or false, found \"yes\"; ",
        ),
        (
            &[URL, "", "1", "", "", "inf"],
            "x error: optional arg `ratio` not a float",
            "expected a number such as 2.5, found \"inf\"; ",
        ),
        (
            &[URL, "", "1", "", "", "1", "{a}"],
            "x error: optional arg `doc` not a json",
            "expected a JSON text, found \"{a}\"; ",
        ),
        (
            &[URL, "", "1", "", "", "1", "1", "a\0"],
            "x error: optional arg `to` not a path",
            "expected a non-empty path, found \"a\\0\"; ",
        ),
    ] {
        let error = entry().arguments(&given(args)).unwrap_err();
        assert_eq!(
            (error.to_string(), error.hint()),
            (message.to_owned(), format!("{hint}{usage}")),
            "{args:?}"
        );
    }
    let error = entry().arguments(&vec![URL.to_owned(); 9]).unwrap_err();
    assert_eq!(error.to_string(), format!("x error: takes 8 arguments, 9 given; {usage}"));
}

#[test]
fn a_long_text_is_truncated() {
    let error = entry().arguments(&["é".repeat(1_000_000)]).unwrap_err();
    assert!(error.hint().len() < 500, "{}", error.hint());
    let deep = "[".repeat(1_000_000);
    assert!(entry().arguments(&given(&[URL, "", "1", "", "", "1", &deep])).is_err());
}

#[test]
fn an_error_shows_the_usage() {
    let catalog = Catalog::built_in();
    let http_get: &Arc<Entry> = catalog.get("http_get").unwrap();
    let error = http_get.arguments(&given(&[URL, "x", "y"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "http_get error: takes 1 argument, 3 given; usage: http_get(url: url)"
    );
}
