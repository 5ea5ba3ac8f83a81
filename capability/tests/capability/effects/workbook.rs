//! Tests of workbooks: their exports, and the errors for workbooks that are invalid or fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json as value;
use wattle_capability::http::Http;
use wattle_capability::par::Par;
use wattle_capability::policy::{Policy, Preflight};
use wattle_rt::Code;

use super::site::Slow;
use super::{failure, json};
use crate::world::World;

const RUN: &str = "(ret (workbook.run? (arg 0)))";

async fn reported_failure(world: &World, book: &str) -> (Code, String) {
    failure(&world.run(RUN, &[book]).await.unwrap())
}

#[tokio::test]
async fn exports_are_outputs_of_components() {
    let world = World::new();
    let book = r#"
        [components.c]
        program = "two"
        args = [{ from = "b", result = 1 }]
        [components.b]
        source = "(out (arg 0)) (out (arg 1)) (out (arg 2)) (ret (arg 3))"
        args = [{ from = "a" }, 7, 2.0, true]
        [components.a]
        program = "upper"
        args = ["x"]
        [components.nothing]
        source = "(ret)"
        needs = ["c"]
        [exports]
        z = "c"
        all = { from = "b" }
        last = { from = "b", result = 3 }
        none = "nothing"
    "#;
    let outcome = world.run(RUN, &[book]).await.unwrap();
    assert_eq!(
        json(&outcome),
        value!({"all": "X\n7\n2.0\ntrue", "last": "true", "none": "", "z": "7\n7"})
    );
    let calls =
        |name: &str| outcome.calls.iter().find(|call| call.function == name).map(|call| call.calls);
    assert_eq!(calls("str.upper"), Some(1), "the trace contains the calls of components");
}

#[tokio::test]
async fn an_invalid_workbook_is_reported() {
    let world = World::new();
    let one = "[components.a]\nprogram = 'upper'\nargs = ['x']\n";
    for (book, words) in [
        ("", "the workbook has no components"),
        ("[components", "invalid workbook, line 1: "),
        ("[components.a]\nprogramm = 'x'", "invalid workbook, line 2: unknown field `programm`"),
        ("x = 1", "unknown field `x`"),
        (one, "the workbook exports nothing"),
        (
            "[components.a]\n[exports]\na = 'a'",
            "component `a` has no program: set `program` to a name, or `source`",
        ),
        (
            "[components.a]\nprogram = 'x'\nsource = ''\n[exports]\na = 'a'",
            "component `a` has both",
        ),
        (
            "[components.a]\nprogram = 'x'\nargs = [[1]]\n[exports]\na = 'a'",
            "an argument is a string, a number, a boolean, or { from",
        ),
        (
            "[components.a]\nprogram = 'x'\nargs = [{ form = 'b' }]\n[exports]\na = 'a'",
            "an argument is a string",
        ),
        (
            "[components.a]\nprogram = 'x'\nargs = [{ from = 'b' }]\n[exports]\na = 'a'",
            "component `a` needs `b`, which is not a component; the components are `a`",
        ),
        (
            "[components.a]\nprogram = 'x'\nneeds = ['c']\n[exports]\na = 'a'",
            "component `a` needs `c`",
        ),
        (
            "[components.a]\nprogram = 'x'\n[exports]\nt = 'b'",
            "the export `t` needs `b`, which is not a component",
        ),
        ("[components.a]\nprogram = 'x'\n[exports]\nt = 1", "an export is a component's name"),
        (
            "[components.a]\nprogram = 'x'\nneeds = ['a']\n[exports]\na = 'a'",
            "depend on each other in a cycle: a → a",
        ),
        (
            "[components.a]\nprogram = 'x'\nneeds = ['b']\n[components.b]\nprogram = 'x'\nneeds = \
             ['d', 'c']\n[components.c]\nprogram = 'x'\nargs = [{ from = 'b' \
             }]\n[components.d]\nprogram = 'x'\n[exports]\na = 'a'",
            "depend on each other in a cycle: b → c → b",
        ),
    ] {
        let (code, why) = reported_failure(&world, book).await;
        assert_eq!(code, Code::EPARSE, "{book}: {why}");
        assert!(why.contains(words), "{book}: {why}");
    }
    let many: String =
        (0..257).map(|n| format!("[components.c{n}]\nprogram = 'upper'\n")).collect();
    assert_eq!(reported_failure(&world, &many).await.0, Code::EBOUND);
    assert_eq!(
        reported_failure(&world, &format!("#{}", "x".repeat(1 << 20))).await.0,
        Code::EBOUND
    );
}

#[tokio::test]
async fn all_components_compile_before_any_runs() {
    let world = World::new();
    let book = r#"
        [components.a]
        source = '(fs.write? "ran.txt" "x")'
        [components.b]
        source = "(ret (str.uper? (arg 0)))"
        needs = ["a"]
        [components.c]
        program = "none"
        [exports]
        a = "a"
    "#;
    let (code, why) = reported_failure(&world, book).await;
    assert_eq!(code, Code::EPARSE);
    let (b, c) = why.split_once("\ncomponent `c`: ").unwrap();
    assert!(
        b.starts_with("component `b`: ") && b.contains("str.uper") && b.contains("line 1"),
        "{why}"
    );
    assert_eq!(c, "there is no program `none`");
    assert!(world.files.read("ran.txt").is_err());
}

#[tokio::test]
async fn a_failure_names_its_component_and_what_was_not_run() {
    let world = World::new();
    let book = r#"
        [components.page]
        program = "fetch"
        args = ["http://h/status/500"]
        [components.side]
        program = "upper"
        args = ["x"]
        [components.title]
        program = "upper"
        args = [{ from = "page" }]
        [components.whole]
        program = "upper"
        args = [{ from = "title" }]
        [exports]
        whole = "whole"
    "#;
    let (code, why) = reported_failure(&world, book).await;
    assert_eq!(code, Code::EREMOTE);
    assert!(
        why.starts_with("component `page` failed: the program returned EREMOTE (6): `http.get`:"),
        "{why}"
    );
    assert!(why.ends_with("\nnot run: `title`, `whole`"), "{why}");
    for (result, words) in [
        (
            "args = [{ from = 'a', result = 2 }]",
            "component `b` failed: its argument 0 has no value: `a` has no result 2; it has 2, \
             counted from 0",
        ),
        ("args = []", "component `b` failed: the program returned EBOUND (5)"),
    ] {
        let book = format!(
            "[components.a]\nprogram = 'two'\nargs = ['x']\n[components.b]\nprogram = \
             'upper'\n{result}\n[exports]\nb = 'b'"
        );
        let (code, why) = reported_failure(&world, &book).await;
        assert_eq!(code, Code::EBOUND);
        assert!(why.contains(words), "{why}");
    }
    let book =
        "[components.a]\nprogram = 'two'\nargs = ['x']\n[exports]\nb = { from = 'a', result = 9 }";
    let (code, why) = reported_failure(&world, book).await;
    assert_eq!(
        (code, why.contains("the export `b` has no value: `a` has no result 9")),
        (Code::EBOUND, true),
        "{why}"
    );
    world.files.write("bytes", b"\xff").unwrap();
    let book = "[components.a]\nprogram = 'file_read'\nargs = ['bytes']\n[exports]\na = 'a'";
    assert!(reported_failure(&world, book).await.1.contains("is not UTF-8"));
}

#[tokio::test]
async fn independent_components_run_concurrently_within_the_limit() {
    let world = World::new();
    let site = Slow::new(Duration::from_millis(50));
    let par = world.grants().config::<Par>().unwrap();
    let par = Par { programs: Arc::clone(&par.programs), max_concurrent: 3.try_into().unwrap() };
    let grants = world.grants().as_ref().clone().with(par).with(Http::new(Arc::clone(&site) as _));
    let mut book = String::from("[components.end]\nprogram = 'upper'\nargs = ['done']\nneeds = [");
    (0..7).for_each(|n| book.push_str(&format!("'p{n}',")));
    book.push_str("]\n");
    (0..7).for_each(|n| {
        book.push_str(&format!("[components.p{n}]\nprogram = 'fetch'\nargs = ['http://h/{n}']\n"))
    });
    book.push_str("[exports]\nend = 'end'\np6 = 'p6'");
    let outcome = world.run_granted(RUN, &[&book], &Arc::new(grants)).await.unwrap();
    assert_eq!(json(&outcome), value!({"end": "DONE", "p6": "6"}));
    assert_eq!(site.peak.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn components_have_exactly_the_grants_of_the_run() {
    let world = World::new();
    let denying = |deny: &str| {
        let policy = Policy::new(Vec::new(), Vec::new(), vec![deny.parse().unwrap()]);
        Arc::new(world.grants().as_ref().clone().guarded(Arc::new(Preflight::new(policy, None))))
    };
    let reads = "[components.a]\nprogram = 'upper'\nargs = ['x']\n[components.b]\nsource = '(ret \
                 (fs.read? \"s\"))'\n[exports]\nb = 'b'";
    for (deny, words) in
        [("program:upper", "rule `program:/upper`"), ("read:s", "denied"), ("fs.read", "denied")]
    {
        let why = match world.run_granted(RUN, &[reads], &denying(deny)).await {
            Ok(outcome) => failure(&outcome),
            Err(why) => (Code::EACCESS, why),
        };
        assert_eq!(why.0, Code::EACCESS, "{deny}: {}", why.1);
        assert!(why.1.contains(&words.replace("program:/", "program:")), "{deny}: {}", why.1);
    }
    let par = world.grants().config::<Par>().unwrap();
    let less = wattle_capability::pure_grants().with(Par::new(Arc::clone(&par.programs)));
    let why = failure(&world.run_granted(RUN, &[reads], &Arc::new(less)).await.unwrap());
    assert!(
        why.0 == Code::EACCESS && why.1.contains("component `b` failed: not granted"),
        "{}",
        why.1
    );
    let deep = "[components.a]\nprogram = 'deeper'\nargs = ['x']\n[exports]\na = 'a'";
    let why = reported_failure(&world, deep).await;
    assert!(why.0 == Code::EBOUND && why.1.contains("nested 3 deep"), "{}", why.1);
}
