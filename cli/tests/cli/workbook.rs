//! Tests of `wattle workbook` on an Org document.

use crate::place::Place;

const BOOK: &str = r#"#+TITLE: A greeting
* name
:PROPERTIES:
:PROGRAM: text_replace
:ARGS: ["ada", "a", "A"]
:END:
The name as it is shown.
* whole
:PROPERTIES:
:ARGS: [{"from": "name"}]
:EXPORT: greeting
:END:
#+begin_src wat
(ret (str.cat "hello " (arg 0)))
#+end_src
"#;

#[test]
fn a_workbook_is_listed_checked_run_and_taken_apart() {
    let place = Place::new();
    place.write("book.org", BOOK);
    let workbook = |args: &[&str]| place.wattle(["workbook"].iter().chain(args)).stdin(BOOK).run();
    for file in ["book.org", "-"] {
        assert_eq!(
            workbook(&["list", file]).code(0).stdout,
            "name  text_replace\nwhole  needs name  exports greeting\n"
        );
    }
    let listed = workbook(&["list", "book.org", "--json"]).code(0).json_lines();
    assert_eq!(listed[0][0]["about"], "The name as it is shown.");
    assert_eq!(workbook(&["lint", "book.org"]).code(0).stdout, "");
    assert_eq!(workbook(&["run", "book.org"]).code(0).stdout.trim(), r#"{"greeting":"hello AdA"}"#);
    let query = workbook(&["query", "book.org", "[.[] | select(.program) | .name]"]);
    assert_eq!(query.code(0).stdout.split_whitespace().collect::<String>(), "[\"name\"]");

    assert_eq!(workbook(&["tangle", "book.org", "--dir", "out"]).code(0).stdout, "out/whole.wat\n");
    assert_eq!(place.read("out/whole.wat"), "(ret (str.cat \"hello \" (arg 0)))\n");
    workbook(&["tangle", "book.org", "--dir", "out"]).code(1).reports(&["failed to write"]);
}

#[test]
fn faults_of_a_workbook_are_reported() {
    let place = Place::new();
    place.write("wrong.org", BOOK.replace("str.cat", "str.cta").replace("text_replace", "none"));
    let lint = place.wattle(["workbook", "lint", "wrong.org"]).run().code(1);
    assert!(lint.stdout.contains("component `name`: "), "{lint:?}");
    assert!(lint.stdout.contains("component `whole`: ") && lint.stdout.contains("str.cta"));
    place.write("odd.org", "* two words\n:PROPERTIES:\n:ARGS: []\n:END:\n");
    let list = place.wattle(["workbook", "list", "odd.org"]).run();
    list.code(1).reports(&["line 1: `two words` is not the name of a component"]);
    place.write("path.toml", "[components.\"../x\"]\nsource = '(ret)'\n");
    let tangle = place.wattle(["workbook", "tangle", "path.toml"]).run();
    tangle.code(1).reports(&["`../x` has no name for a file"]);
}
