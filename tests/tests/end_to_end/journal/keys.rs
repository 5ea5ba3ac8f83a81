//! Tests the idempotency key, which lets a server recognize a repeated request.

use super::place::{ByTurn, Place, answer, done, wat};

const POSTS: &str = r#"(http.post? "https://a.example/form" "x" "text/plain")
(http.request? "patch" "https://a.example/form" 0 "y")
(http.request? "POST" "https://a.example/form" "{\"Idempotency-Key\":\"my own\"}" "y")
(http.request? "PUT" "https://a.example/form" 0 "y")
(http.get? "https://a.example/page")
(resv "sent")"#;

async fn keys(id: &str) -> Vec<Option<String>> {
    let place = Place::new();
    let (ended, _) =
        place.run(&place.journal(), &ByTurn(vec![wat(POSTS), wat(POSTS), done()]), id).await;
    assert_eq!(answer(&ended), "done");
    let keys = place.network.keys();
    let replayed = place.replay(id).await;
    assert_eq!(replayed.difference, None);
    keys
}

#[tokio::test]
async fn each_post_has_a_key_for_its_run_step_and_call() {
    let first = keys("r").await;
    let [post, patch, own, put, get, rest @ ..] = first.as_slice() else { panic!("{first:?}") };
    assert_eq!((own.as_deref(), put, get), (Some("my own"), &None, &None));
    assert!(
        post.as_ref()
            .is_some_and(|key| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())),
        "{post:?}"
    );
    assert!(
        post != patch && rest[0] != *post && rest[0] != *patch && rest[0].is_some(),
        "{first:?}"
    );
    assert_eq!(keys("r").await, first, "the same calls of the same run have the same keys");
    let other = keys("q").await;
    assert!(other[0].is_some() && !first.contains(&other[0]), "{other:?}");
}
