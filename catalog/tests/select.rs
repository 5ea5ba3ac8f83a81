//! The programs that an agent may call.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use wattle_catalog::{Catalog, Entry, Origin, ToolRef};

fn catalog() -> Catalog {
    let program = |text: &str| Entry::parse(text, Origin::BuiltIn("test.wat")).unwrap();
    Catalog::default().with([
        program(
            ";;; name = \"find\"\n;;; description = \"Find\"\n;;; args = [\n;;;   { name = \
             \"where\", type_hint = \"path\", description = \"w\" },\n;;;   { name = \"what\", \
             description = \"t\" },\n;;;   { name = \"max\", type_hint = \"int\", description = \
             \"m\", default = 5 },\n;;; ]\n(ret (arg 0))\n",
        ),
        program(";;; name = \"text.count\"\n;;; description = \"Count\"\n(ret \"1\")\n"),
        program(";;; name = \"text_trim\"\n;;; description = \"Trim\"\n(ret \"2\")\n"),
    ])
}

fn tools(text: &str) -> Vec<ToolRef> {
    #[derive(serde::Deserialize)]
    struct File {
        tools: Vec<ToolRef>,
    }
    toml::from_str::<File>(text).unwrap().tools
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.iter().map(|entry| entry.name().as_str()).collect()
}

#[test]
fn a_prefix_selects_programs_whichever_separator_their_names_have() {
    for (text, expected) in [
        ("tools = [\"text.*\"]", vec!["text.count", "text_trim"]),
        ("tools = [\"text_*\"]", vec!["text.count", "text_trim"]),
        ("tools = [\"*\"]", vec!["find", "text.count", "text_trim"]),
        ("tools = []", vec![]),
        ("tools = [\"find\", \"find*\"]", vec!["find"]),
    ] {
        assert_eq!(names(&catalog().select(&tools(text)).unwrap()), expected, "{text}");
    }
}

#[test]
fn a_context_fills_parameters_that_callers_do_not_see() {
    let selected = catalog()
        .select(&tools(
            "tools = [{ id = \"find\", alias = \"find_rule\", description = \"Find a rule\", \
             context = { where = \"rules\", max = \"3\", tone = \"dry\" } }]",
        ))
        .unwrap();
    assert_eq!(names(&selected), ["find_rule"]);
    let entry = selected.get("find_rule").unwrap();
    assert_eq!(entry.usage(), "find_rule(what: string)");
    assert_eq!(entry.meta().description, "Find a rule");
    assert_eq!(entry.arguments(&["x".to_owned()]).unwrap(), ["rules", "x", "3"]);
    assert_eq!(entry.context()["tone"], "dry");
    assert!(entry.arguments(&["x".to_owned(), "y".to_owned()]).is_err());
}

#[test]
fn invalid_references_are_refused() {
    for (text, message) in [
        ("tools = [\"fnd\"]", "there is no program `fnd`; did you mean `find`?"),
        ("tools = [\"zebra\"]", "there is no program `zebra`"),
        ("tools = [\"zebra*\"]", "no program's name matches `zebra*`"),
        (
            "tools = [{ id = \"text.*\", alias = \"t\" }]",
            "`text.*` stands for several programs, which cannot share an alias",
        ),
        (
            "tools = [{ id = \"find\", alias = \"No good\" }]",
            "the alias \"No good\" is not a program's name",
        ),
        (
            "tools = [\"find\", { id = \"text_trim\", alias = \"find\" }]",
            "two tools have the name `find`",
        ),
        (
            "tools = [{ id = \"find\", context = { max = \"many\" } }]",
            "the context of `find` sets `max`: expected an int, found \"many\"",
        ),
    ] {
        assert_eq!(catalog().select(&tools(text)).unwrap_err().to_string(), message, "{text}");
    }
}
