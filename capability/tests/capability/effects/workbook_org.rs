//! Tests of workbooks that are Org documents.

use serde_json::json as value;
use wattle_capability::workbook::{lint, outline};
use wattle_rt::Code;

use super::{failure, json};
use crate::world::{ProgramTexts, World};

const RUN: &str = "(ret (workbook.run? (arg 0)))";

const BOOK: &str = r##"
Prose before the first headline, with [[a link]] and a = sign.

* TODO c :tag:other:
:properties:
:program: two
:args: [{"from": "b", "result": 1}]
:depends: nothing, a
:export: z, whole
:end:
* Prose
:PROPERTIES:
:CUSTOM_ID: x
:END:
#+begin_src python
* not a headline
#+end_src
** b
:PROPERTIES:
:ARGS: [{"from": "a"}, 7, 2.0, true]
:EXPORT: last 3
:END:
The block below is the program.
#+BEGIN_SRC wat :results output
(out (arg 0)) (out (arg 1))
,* (out (arg 2)) is not called
#+END_SRC
*** a
:PROPERTIES:
:PROGRAM: upper
:ARGS: ["x"]
:EXPORT:
:END:
*** The one that prints nothing
:PROPERTIES:
:NAME: nothing
:END:
#+begin_src wat
(ret)
#+end_src
"##;

#[tokio::test]
async fn a_headline_is_a_component() {
    let world = World::new();
    let book = BOOK.replace(",* (out (arg 2)) is not called", "(out (arg 2)) (ret (arg 3))");
    let outcome = world.run(RUN, &[&book]).await.unwrap();
    assert_eq!(json(&outcome), value!({"a": "X", "last": "true", "whole": "7\n7", "z": "7\n7"}));
}

#[test]
fn an_outline_has_what_each_headline_declares() {
    let found = outline(BOOK).unwrap();
    let names: Vec<&str> = found.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["c", "b", "a", "nothing"], "in the order of the document");
    let [c, b, a, nothing] = &found[..] else { panic!() };
    assert_eq!((c.line, &c.needs), (Some(4), &vec!["a".into(), "b".into(), "nothing".into()]));
    assert_eq!(c.exports, ["whole", "z"]);
    assert_eq!(b.about, "The block below is the program.");
    assert_eq!(
        b.source.as_deref(),
        Some("(out (arg 0)) (out (arg 1))\n* (out (arg 2)) is not called\n")
    );
    assert_eq!((a.program.as_deref(), &a.exports), (Some("upper"), &vec!["a".to_owned()]));
    assert_eq!(nothing.line, Some(34));
    let args = serde_json::to_value(b).unwrap()["args"].clone();
    assert_eq!(args, value!([{"from": "a"}, 7, 2.0, true]));
    let toml = outline("[components.a]\nprogram = 'upper'\n[exports]\nx = 'a'").unwrap();
    assert_eq!((toml[0].line, toml[0].exports[0].as_str()), (None, "x"));
}

#[tokio::test]
async fn an_invalid_document_is_reported_with_its_line() {
    let world = World::new();
    let block = "#+begin_src wat\n(ret)\n#+end_src\n";
    let component = |drawer: &str| format!("* a\n:PROPERTIES:\n{drawer}\n:END:\n{block}");
    for (book, words) in [
        ("* a\n".to_owned(), "the workbook has no components"),
        (format!("* a\n{block}"), "the workbook exports nothing"),
        (format!("* a b\n{block}"), "line 1: `a b` is not the name of a component"),
        (format!("* ../a\n{block}"), "line 1: `../a` is not the name"),
        (format!("* a\n{block}* a\n{block}"), "line 5: the component `a` exists already"),
        (format!("* a\n{block}{block}"), "line 5: a headline has at most one block"),
        ("* a\n:PROPERTIES:\n:ARGS: []\n".to_owned(), "line 1: its drawer has no line `:END:`"),
        ("* a\n#+begin_src wat\n(ret)\n".to_owned(), "line 1: its last block has no line"),
        (
            "* a\n:PROPERTIES:\nx\n:END:\n".to_owned(),
            "line 3: a line of a drawer is `:NAME: value`",
        ),
        (component(":ARGS: [1"), "line 1: `:ARGS:` is not a JSON array"),
        (component(":ARGS: [[1]]"), "an argument is a string, a number, a boolean"),
        (component(":ARGS: []\n:args: []"), "line 4: the property is set already"),
        (component(":EXPORT: a b c"), "an export is a name, with the number of a result"),
        (component(":EXPORT: a, a"), "the export `a` exists already"),
        (component(":EXPORT: a\n:DEPENDS: b"), "component `a` needs `b`"),
        (component(":EXPORT: a\n:PROGRAM: upper"), "component `a` has both"),
        ("* a\n:PROPERTIES:\n:EXPORT: a\n:END:\n".to_owned(), "component `a` has no program"),
    ] {
        let (code, why) = failure(&world.run(RUN, &[&book]).await.unwrap());
        assert_eq!(code, Code::EPARSE, "{book}: {why}");
        assert!(why.contains(words), "{book}: {why}");
    }
}

#[tokio::test]
async fn a_hostile_document_is_bounded() {
    let world = World::new();
    let properties: String = (0..65).map(|n| format!(":P{n}: x\n")).collect();
    for book in [
        "* a\n".repeat(4_097),
        format!("{} a\n", "*".repeat(33)),
        format!("* a\n:PROPERTIES:\n{properties}:END:\n"),
        format!("* a\n{}", "x".repeat(1 << 20)),
        (0..257).map(|n| format!("* c{n}\n:PROPERTIES:\n:PROGRAM: upper\n:END:\n")).collect(),
    ] {
        let (code, why) = failure(&world.run(RUN, &[&book]).await.unwrap());
        assert_eq!(code, Code::EBOUND, "{why}");
    }
    // An arbitrary text is either a workbook or an error, and never causes a panic.
    let pieces = [
        "*",
        "* ",
        "**\t",
        "\u{0}",
        "\r\n",
        "\n",
        ":PROPERTIES:\n",
        ":END:\n",
        ":",
        "::",
        ":a:",
        "[x]\n",
        "#+begin_src wat\n",
        "#+begin_src",
        "#+end_src\n",
        ",*",
        ",#+",
        "é",
        "\u{202e}",
        ":ARGS: [",
        "{\"from\":",
        "]\n",
        " :tag:",
        "* :a:\n",
        ":EXPORT: ,,\n",
    ];
    let mut state = 7_usize;
    for _ in 0..3_000 {
        let text: String = (0..12)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                pieces[(state >> 33) % pieces.len()]
            })
            .collect();
        drop(outline(&text));
    }
}

#[tokio::test]
async fn lint_reports_every_program_that_does_not_compile() {
    let world = World::new();
    let programs = ProgramTexts(world.runtime.clone());
    let book = "* a\n:PROPERTIES:\n:EXPORT:\n:END:\n#+begin_src wat\n(ret)\n#+end_src\n";
    assert_eq!(lint(book, &programs).await, Vec::<String>::new());
    let faults =
        lint(&format!("{book}* b\n:PROPERTIES:\n:PROGRAM: none\n:END:\n"), &programs).await;
    assert!(faults.len() == 1 && faults[0].starts_with("component `b`: "), "{faults:?}");
    assert!(lint("* a b\n:PROPERTIES:\n:ARGS:\n:END:\n", &programs).await[0].contains("line 1"));
}
