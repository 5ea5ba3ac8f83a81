//! Tests of filing tickets.

use wattle_rt::Code;

use super::failure;
use crate::world::World;

const FILE: &str = "(ret (issue.file? (arg 0) (arg 1) (arg 2)))";

#[tokio::test]
async fn a_ticket_is_filed_and_the_model_continues() {
    let world = World::new();
    let outcome = world.run(FILE, &[" no\nfax ", "send it", ""]).await.unwrap();
    let output = &outcome.texts()[0];
    assert!(
        output.starts_with("filed: no fax\n") && output.contains("continue with what"),
        "{output}"
    );
    let filed = world.tracker.0.lock().unwrap().clone();
    assert_eq!(
        (filed[0].title.as_str(), filed[0].need.as_str(), filed[0].tried.as_str()),
        ("no fax", "send it", "")
    );
    assert!(filed[0].run.is_none() && filed[0].ts > 1_600_000_000_000);
}

#[tokio::test]
async fn a_ticket_has_texts_of_limited_length() {
    let world = World::new();
    let (long, longer) = ("x".repeat(201), "ä".repeat(4_001));
    for (args, words) in [
        (["", "need", ""], "`title` of the ticket is empty"),
        (["title", " \n", ""], "`need` of the ticket is empty"),
        ([&long, "need", ""], "`title` of the ticket has 201 characters, more than 200"),
        (["title", &longer, ""], "`need` of the ticket has 4001 characters, more than 4000"),
        (["title", "need", &longer], "`tried` of the ticket has 4001 characters, more than 4000"),
    ] {
        assert_eq!(
            failure(&world.run(FILE, &args).await.unwrap()),
            (Code::EBOUND, words.to_owned())
        );
    }
    assert!(world.tracker.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn tickets_of_a_run_are_limited() {
    let world = World::new();
    let many = r#"(let $n 0) (while (< $n 25) (issue.file? "a" "b") (set $n (+ $n 1)))"#;
    let (code, why) = failure(&world.run(many, &[]).await.unwrap());
    assert_eq!(code, Code::EBUDGET);
    assert!(why.contains("20 tickets"), "{why}");
    assert_eq!(world.tracker.0.lock().unwrap().len(), 20);
}
