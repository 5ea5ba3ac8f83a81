//! Tests of artifacts: data that a program saves for the application.

use wattle_rt::{Code, Exit};

use super::{failure, json};
use crate::world::World;

/// Runs a program and returns the names and contents of its artifacts.
async fn left(text: &str) -> Vec<(String, String)> {
    let outcome = World::new().run(text, &[]).await.unwrap();
    let text = |data: Vec<u8>| String::from_utf8(data).unwrap();
    outcome.artifacts.into_iter().map(|one| (one.name, text(one.data))).collect()
}

#[tokio::test]
async fn an_artifact_is_not_a_result_and_the_last_one_of_a_name_counts() {
    let program = r#"(sys.artifact "a.csv" "1") (sys.artifact "b" "2") (sys.artifact "a.csv" "3")"#;
    let expected = [("b", "2"), ("a.csv", "3")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(left(program).await, expected);
    let outcome = World::new().run(program, &[]).await.unwrap();
    assert_eq!(outcome.texts(), Vec::<String>::new());
}

#[tokio::test]
async fn a_program_that_fails_leaves_nothing() {
    for ending in ["(fail EPARSE)", "(unreachable)", "(kv.get \"missing\")"] {
        let program = format!("(sys.artifact \"a\" \"1\") {ending}");
        assert_eq!(left(&program).await, [], "{ending}");
    }
}

#[tokio::test]
async fn a_name_is_a_plain_file_name() {
    for name in ["", ".a", "..", "a/b", "a b", "ä", "a\\00b", &"x".repeat(101)] {
        let program = format!("(sys.artifact \"{name}\" \"1\")");
        let (code, why) = failure(&World::new().run(&program, &[]).await.unwrap());
        assert_eq!(code, Code::EBOUND, "{name}");
        assert!(why.contains("is not the name of an artifact"), "{why}");
    }
    let longest = "x".repeat(100);
    assert_eq!(left(&format!("(sys.artifact \"{longest}\" \"\")")).await.len(), 1);
}

#[tokio::test]
async fn artifacts_are_bounded_in_number_and_size() {
    let many = r#"(for $i 0 33 (sys.artifact (fmt "a{}" $i) "1"))"#;
    let (code, why) = failure(&World::new().run(many, &[]).await.unwrap());
    assert_eq!(code, Code::EBOUND, "{why}");
    assert!(why.contains("at most 32 artifacts of together 4 MiB"), "{why}");
    let large = r#"(let $x (str.repeat "x" 3000000)) (sys.artifact "a" $x) (sys.artifact "a" $x)
        (sys.artifact "b" $x)"#;
    let (code, why) = failure(&World::new().run(large, &[]).await.unwrap());
    assert_eq!(code, Code::EBOUND, "{why}");
}

#[tokio::test]
async fn a_nested_program_leaves_none() {
    let text = r#"(each $r (par.run? (arr.from_json? "[[\"leave\", \"x\"]]")) (out $r))"#;
    let outcome = World::new().run(text, &[]).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(Code::SUCCESS));
    assert!(outcome.artifacts.is_empty());
    assert_eq!(json(&outcome)["code"], "EACCESS");
    assert!(json(&outcome)["error"].as_str().unwrap().contains("cannot leave artifacts"));
}
