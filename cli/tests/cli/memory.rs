//! Tests of `wattle memory`, and of programs that search the items added by that command.

use crate::place::Place;

#[test]
fn items_are_added_found_and_removed() {
    let place = Place::new();
    let memory = |args: &[&str], stdin: &str| {
        let args = ["memory"].iter().chain(args);
        place.wattle(args).env("WATTLE_STORE", "s.db").stdin(stdin).run()
    };
    assert_eq!(memory(&["add", "Ada drinks tea"], "").code(0).stdout, "1\n");
    assert_eq!(memory(&["add", "-"], "The office\n closes at six\n").code(0).stdout, "2\n");
    assert_eq!(memory(&["add", "Ada drinks tea"], "").code(0).stdout, "1\n");
    assert_eq!(
        memory(&["list"], "").code(0).stdout,
        "2 The office closes at six\n1 Ada drinks tea\n"
    );
    assert_eq!(memory(&["search", "drinking", "tea"], "").code(0).stdout, "1 Ada drinks tea\n");
    let found = memory(&["search", "closes", "--json"], "").code(0).json_lines();
    assert_eq!(found[0][0]["text"], "The office\n closes at six");

    let exec = place
        .wattle(["exec", "-"])
        .env("WATTLE_STORE", "s.db")
        .stdin("(memory.add \"Tea is hot\") (ret (memory.search \"tea\" 1))")
        .run();
    assert!(exec.code(0).stdout.contains("\"scope\":\"tenant\""));
    assert_eq!(memory(&["search", "hot"], "").code(0).stdout, "3 Tea is hot\n");

    memory(&["remove", "1", "3"], "").code(0);
    memory(&["remove", "1"], "").code(1).reports(&["the memory has no item 1", "memory list"]);
    memory(&["add", " "], "").code(2).reports(&["the text of the item is empty"]);
    memory(&["search", "?!"], "").code(2).reports(&["there are no words to search for"]);
    assert_eq!(memory(&["list"], "").code(0).stdout, "2 The office closes at six\n");
}

#[test]
fn an_empty_list_says_so() {
    let place = Place::new();
    for (list, note) in [
        (&["memory", "list"][..], "the memory has no items"),
        (&["memory", "search", "cats"], "no item of the memory matches"),
        (&["vars", "list"], "the tenant has no such variables"),
        (&["vars", "list", "--secret"], "the store has no such secrets"),
    ] {
        let done = place.wattle(list).run().code(0).reports(&[note]);
        assert_eq!(done.stdout, "", "{list:?}");
    }
}
