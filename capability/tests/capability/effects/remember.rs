//! Tests of the `memory` functions: arguments, limits, and search by meaning.

use std::sync::Arc;

use wattle_capability::PortFuture;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::memory::{InMemory, MemoryGrant};
use wattle_capability::policy::{Policy, Preflight};
use wattle_capability::search::Embedder;
use wattle_rt::{Code, Failure, Grants};

use super::failure;
use crate::world::World;

#[tokio::test]
async fn arguments_out_of_bounds_say_what_is_allowed() {
    let world = World::new();
    let long = "ä".repeat(4_001);
    let words = "a ".repeat(10_001);
    for (program, arg, code, why) in [
        ("(memory.add? (arg 0))", " \n", Code::EBOUND, "the text of the item is empty"),
        (
            "(memory.add? (arg 0))",
            &long,
            Code::EBOUND,
            "the text of the item has 4001 characters, more than 4000; add its parts, or write it \
             to a file",
        ),
        (
            "(memory.add? \"x\" (arg 0))",
            "world",
            Code::EBOUND,
            "the scope is `tenant` or `session`, not \"world\"",
        ),
        ("(memory.list? 101)", "", Code::EBOUND, "n must be 0 to 100, not 101"),
        ("(memory.search? \"x\" -1)", "", Code::EBOUND, "n must be 0 to 20, not -1"),
        (
            "(memory.search? (arg 0) 0)",
            &words,
            Code::EBOUND,
            "there are 20002 characters, more than 20000",
        ),
        ("(memory.remove? 7)", "", Code::ENOENT, "the memory has no item 7"),
    ] {
        let outcome = world.run(program, &[arg]).await.unwrap();
        assert_eq!(failure(&outcome), (code, why.to_owned()), "{program}");
    }
}

#[tokio::test]
async fn the_last_words_of_a_conversation_count() {
    let world = World::new();
    let program = r#"(memory.add "tea is hot") (memory.add "the bicycle is red")
        (out (memory.search (arg 0) 1)) (ret (memory.search "?!" 0))"#;
    let many: String = (0..60).map(|n| format!("word{n} ")).collect();
    let outcome = world.run(program, &[&format!("tea {many} bicycle")]).await.unwrap();
    assert_eq!(outcome.texts()[1], "[]");
    assert!(outcome.texts()[0].contains("bicycle"), "{:?}", outcome.texts());
}

#[tokio::test]
async fn a_text_that_is_there_keeps_its_id() {
    let world = World::new();
    let program = r#"(let $a (memory.add "x")) (let $b (memory.add " x "))
        (let $c (memory.add "x" "session"))
        (out (str.from_int (- $b $a))) (ret (str.from_int (- $c $a)))"#;
    let outcome = world.run(program, &[]).await.unwrap();
    assert_eq!(outcome.texts(), ["0", "1"], "{:?}", outcome.failure);
}

/// A model whose embeddings depend only on whether a text contains words about the sea.
struct Sea;

impl Inference for Sea {
    fn ask(&self, _: Question) -> PortFuture<'_, Reply> {
        Box::pin(async { Err(Failure::new(Code::EREMOTE, "unexpected question")) })
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let sea = ["ocean", "whale", "ship"].iter().filter(|word| text.contains(**word)).count();
        let vector = vec![if sea > 0 { 1.0 } else { 0.0 }, 0.1];
        Box::pin(async { Ok(Embedding { vector, tokens: 1 }) })
    }
}

fn with_meaning(world: &World, deny: Option<&str>) -> Arc<Grants> {
    let embedder = Embedder { name: "m".to_owned(), model: Arc::new(Sea) };
    let memory = MemoryGrant::new(Arc::new(InMemory::default()), Some(embedder));
    let grants = (*world.grants()).clone().with(memory);
    let Some(deny) = deny else { return Arc::new(grants) };
    let policy = Policy::new(Vec::new(), Vec::new(), vec![deny.parse().unwrap()]);
    Arc::new(grants.guarded(Arc::new(Preflight::new(policy, None))))
}

const SEARCH: &str = r#"(memory.add "a coin from the bank") (memory.add "a whale follows the ship")
    (memory.add "the ocean") (ret (memory.search "ocean" 2))"#;

#[tokio::test]
async fn items_without_the_words_are_found_by_meaning() {
    let world = World::new();
    let texts = async |grants: &Arc<Grants>| -> Vec<String> {
        let outcome = world.run_granted(SEARCH, &[], grants).await.unwrap();
        let found: serde_json::Value = serde_json::from_str(&outcome.texts()[0]).unwrap();
        let items = found.as_array().unwrap().iter();
        items.map(|item| item["text"].as_str().unwrap().to_owned()).collect()
    };
    let both = ["the ocean", "a whale follows the ship"];
    assert_eq!(texts(&with_meaning(&world, None)).await, both);
    // If a rule denies the model, only the keyword search runs.
    assert_eq!(texts(&with_meaning(&world, Some("ai"))).await, ["the ocean"]);
}
