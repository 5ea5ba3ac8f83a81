//! Tests of programs that end the run.

use wattle_rt::{Code, Exit};

use super::{failure, json};
use crate::world::World;

#[tokio::test]
async fn a_result_is_the_answer_if_the_program_exits_with_0() {
    let world = World::new();
    for (text, answer, results) in [
        ("(sys.done? \"four\")", Some("four"), &["four"][..]),
        (
            "(out \"a\") (sys.done? \"b\") (out \"c\") (sys.done? \"d\")",
            Some("d"),
            &["a", "b", "c", "d"],
        ),
        ("(sys.done? \"four\") (fail EPARSE)", None, &["four"]),
        ("(sys.done? \"four\") (unreachable)", None, &["four"]),
        ("(out \"four\")", None, &["four"]),
    ] {
        let outcome = world.run(text, &[]).await.unwrap();
        assert_eq!(
            (outcome.answer.as_deref(), outcome.texts().as_slice()),
            (answer, &results.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    let (code, why) = failure(&world.run("(sys.done? \" \\n\")", &[]).await.unwrap());
    assert_eq!(code, Code::EBOUND);
    assert!(why.contains("the result is empty"), "{why}");
    let largest = world.run("(sys.done? (str.repeat \"x\" 1048576))", &[]).await.unwrap();
    assert_eq!(largest.answer.map(|answer| answer.len()), Some(1 << 20));
    let larger = world.run("(sys.done? (str.repeat \"x\" 1048577))", &[]).await.unwrap();
    let (code, why) = failure(&larger);
    assert_eq!((code, larger.answer.as_deref()), (Code::EBOUND, None));
    assert!(why.contains("1048577 bytes"), "{why}");
}

#[tokio::test]
async fn a_nested_program_cannot_end_the_run() {
    let world = World::new();
    let text = r#"(each $r (par.run? (arr.from_json? "[[\"finish\", \"x\"]]")) (out $r))"#;
    let outcome = world.run(text, &[]).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code::SUCCESS));
    assert_eq!(outcome.answer, None);
    assert_eq!(json(&outcome)["code"], "EACCESS");
    assert!(json(&outcome)["error"].as_str().unwrap().contains("cannot end the run"));
}
