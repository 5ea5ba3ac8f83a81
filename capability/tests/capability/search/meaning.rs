//! Tests of search by meaning: the model's effect on results, its cost, and search without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wattle_capability::PortFuture;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::policy::{Policy, Preflight};
use wattle_capability::search::Embedder;
use wattle_capability::secrets::{Secret, SecretList, Vault};
use wattle_rt::{Code, Failure};

use super::{Place, overlay};

/// A model that recognizes words about the sea and about money. It fails after a fixed number of
/// answers.
struct Model {
    requests: AtomicUsize,
    fails_after: usize,
}

impl Inference for Model {
    fn ask(&self, _: Question) -> PortFuture<'_, Reply> {
        Box::pin(async { Err(Failure::new(Code::EREMOTE, "unexpected question")) })
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let requests = self.requests.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if requests >= self.fails_after {
                return Err(Failure::new(Code::EREMOTE, "the endpoint is down"));
            }
            let about =
                |words: &[&str]| words.iter().filter(|word| text.contains(**word)).count() as f64;
            let vector =
                vec![about(&["ocean", "whale", "ship"]), about(&["bank", "coin", "price"]), 0.1];
            Ok(Embedding { vector, tokens: 1 })
        })
    }
}

fn place(fails_after: usize) -> (Place, Arc<Model>) {
    let model = Arc::new(Model { requests: AtomicUsize::new(0), fails_after });
    let embedder = Embedder { name: "m".to_owned(), model: Arc::clone(&model) as Arc<_> };
    let place = Place::new(overlay(), None, Some(embedder));
    for (path, text) in [
        ("sea.txt", "a whale follows the ship"),
        ("money.txt", "a coin from the bank"),
        ("word.txt", "ocean"),
    ] {
        place.files.write(path, text.as_bytes()).unwrap();
    }
    (place, model)
}

#[tokio::test]
async fn passages_without_the_words_are_found_by_meaning() {
    let (place, model) = place(usize::MAX);
    assert_eq!(place.paths("ocean").await, ["word.txt", "sea.txt", "money.txt"]);
    assert_eq!(model.requests.load(Ordering::SeqCst), 4);
    // A stored embedding is not requested again.
    assert_eq!(place.paths("price").await[0], "money.txt");
    assert_eq!(model.requests.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn without_the_model_search_is_by_words() {
    for answers in [0, 2] {
        let (place, _) = place(answers);
        let outcome = place.outcome("ocean", 0).await;
        assert!(
            outcome.success() && outcome.texts()[0].contains("word.txt"),
            "{:?}",
            outcome.failure
        );
        assert!(
            outcome.log.iter().any(|line| line.contains("by words only: the endpoint is down")),
            "{:?}",
            outcome.log
        );
    }
}

#[tokio::test]
async fn a_search_embeds_a_few_passages_and_the_next_one_continues() {
    let (place, model) = place(usize::MAX);
    for n in 0..40 {
        place.files.write(&format!("more/{n}.txt"), b"nothing of note").unwrap();
    }
    place.search("ocean").await;
    assert_eq!(model.requests.load(Ordering::SeqCst), 17);
    place.search("ocean").await;
    assert_eq!(model.requests.load(Ordering::SeqCst), 34);
}

#[tokio::test]
async fn a_search_sends_nothing_to_a_denied_model() {
    for rule in ["ai", "http", "host:*"] {
        let rules = || vec![rule.parse().unwrap()];
        for policy in [
            Policy::new(Vec::new(), Vec::new(), rules()),
            Policy::new(Vec::new(), rules(), Vec::new()),
        ] {
            let (place, model) = place(usize::MAX);
            let grants = place.grants.clone().guarded(Arc::new(Preflight::new(policy, None)));
            let place = Place { grants, ..place };
            assert_eq!(place.paths("ocean").await, ["word.txt"], "{rule}");
            assert_eq!(model.requests.load(Ordering::SeqCst), 0, "{rule}");
        }
    }
}

#[tokio::test]
async fn a_text_with_a_secret_is_not_embedded() {
    let (place, model) = place(usize::MAX);
    let secret = Secret::new("api", "tok-0123456789", Vec::new()).unwrap();
    let vault = Vault::new(Arc::new(SecretList::new([("api".to_owned(), Ok(secret))])));
    place.files.write("ship.txt", b"a ship named tok-0123456789").unwrap();
    let place = Place { grants: place.grants.clone().with(vault), ..place };
    let found = place.paths("ocean").await;
    assert_eq!(found, ["word.txt", "sea.txt", "money.txt"]);
    assert_eq!(model.requests.load(Ordering::SeqCst), 4, "the query and three of four passages");
    // If the query contains a secret, only the keyword search runs.
    let outcome = place.outcome("tok-0123456789", 0).await;
    assert!(outcome.success() && outcome.texts()[0].contains("ship.txt"), "{:?}", outcome.failure);
    assert_eq!(model.requests.load(Ordering::SeqCst), 4);
    let refused = "by words only: the query contains the value of the secret `api`";
    assert!(outcome.log.iter().any(|line| line.contains(refused)), "{:?}", outcome.log);
}
