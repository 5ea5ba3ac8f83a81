//! Secrets on their way: to their hosts, never further, and never back.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wattle_capability::egress::Egress;
use wattle_capability::http::Http;
use wattle_capability::secrets::{Listed, Secret, Vault};
use wattle_rt::Grants;

use crate::site::{Server, allowing, moved, ok, serve};
use crate::world::World;

const VALUE: &str = "tok/3n+value=42";

/// The grants of a run that may reach those servers, with a secret for 127.0.0.1.
fn grants(world: &World, servers: &[&Server]) -> Arc<Grants> {
    let egress = Egress::new(allowing(&servers.iter().map(|server| server.rule()).collect::<Vec<_>>()));
    let secret = Secret::new("api", VALUE, vec!["127.0.0.1".parse().unwrap()]).unwrap();
    let vault = Vault::new(Arc::new(Listed::new([("api".to_owned(), Ok(secret))])));
    Arc::new((*world.grants()).clone().with(Http::new(Arc::new(egress))).with(vault))
}

async fn run(world: &World, grants: &Arc<Grants>, text: &str, args: &[&str]) -> Result<String, String> {
    let outcome = world.run_granted(text, args, grants).await.unwrap();
    match outcome.failure {
        None => Ok(outcome.texts().concat()),
        Some(failure) => Err(failure.failure.to_string()),
    }
}

const ASK: &str = "(ret (http.request? \"POST\" (arg 0) (arg 1) (arg 2)))";
const HEADER: &str = r#"{"authorization":"Bearer ${secret:api}"}"#;

#[tokio::test]
async fn a_secret_reaches_its_host_and_what_comes_back_has_none_of_it() {
    let echo =
        format!("you are {VALUE} ({}), {}", STANDARD.encode(format!("me:{VALUE}")), serde_json::json!({ "k": VALUE }));
    let server = serve(&[ok(&echo), ok(&echo), ok(&echo)]).await;
    let world = World::new();
    let grants = grants(&world, &[&server]);
    let told = run(&world, &grants, ASK, &[&server.url("/"), HEADER, "key=${secret:api}"]).await.unwrap();
    let sent = &server.requests()[0];
    assert!(
        sent.contains(&format!("authorization: Bearer {VALUE}\r\n")) && sent.ends_with(&format!("key={VALUE}")),
        "{sent}"
    );
    assert!(!told.contains("tok/3n") && told.contains("you are ${secret:api} ("), "{told}");
    // A later request that carries none is scrubbed all the same.
    let later = run(&world, &grants, "(ret (http.get? (arg 0)))", &[&server.url("/")]).await.unwrap();
    assert!(later.starts_with("you are ${secret:api} (") && !later.contains("tok/3n"), "{later}");
    let many = "(local $a i32) (local.set $a (str.split? (arg 0) \" \")) (ret (str.join? (http.get_all? (local.get $a)) \"\"))";
    let many = run(&world, &grants, many, &[&server.url("/")]).await.unwrap();
    assert!(!many.contains("tok/3n") && many.contains("${secret:api}"), "{many}");
}

#[tokio::test]
async fn an_answer_that_fails_is_scrubbed_too() {
    let body = format!("no such token: {VALUE}");
    let length = body.len();
    let server =
        serve(&[format!("HTTP/1.1 403 No\r\ncontent-length: {length}\r\nx-token: {VALUE}\r\n\r\n{body}")]).await;
    let world = World::new();
    let grants = grants(&world, &[&server]);
    let post = "(ret (http.post? (arg 0) (arg 1) \"text/plain\"))";
    let why = run(&world, &grants, post, &[&server.url("/"), "${secret:api}"]).await.unwrap_err();
    assert!(why.ends_with("answered with status 403: no such token: ${secret:api}"), "{why}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_takes_no_secret_along() {
    let world = World::new();
    // A header stays behind.
    let other = serve(&[ok("there")]).await;
    let server = serve(&[moved(307, &other.url("/x"))]).await;
    let grants_of = |servers: &[&Server]| grants(&world, servers);
    let told = run(&world, &grants_of(&[&server, &other]), ASK, &[&server.url("/"), HEADER, "plain"]).await.unwrap();
    assert!(told.contains("there"), "{told}");
    assert!(server.requests()[0].contains(VALUE));
    assert!(
        !other.requests()[0].contains("tok/3n") && !other.requests()[0].contains("authorization"),
        "{:?}",
        other.requests()
    );
    // A body is not sent on.
    for status in [301, 302, 303, 307, 308] {
        let other = serve(&[ok("there")]).await;
        let server = serve(&[moved(status, &other.url("/x"))]).await;
        let why = run(&world, &grants_of(&[&server, &other]), ASK, &[&server.url("/"), "", "${secret:api}"])
            .await
            .unwrap_err();
        assert!(
            why.contains("the request's body carries a secret, which stays with the host that it was for"),
            "{status}: {why}"
        );
        assert!(other.requests().is_empty(), "{status}");
    }
    // Within the origin it goes along.
    let server = serve(&[moved(307, "/next"), ok("done")]).await;
    run(&world, &grants_of(&[&server]), ASK, &[&server.url("/"), HEADER, "${secret:api}"]).await.unwrap();
    let next = &server.requests()[1];
    assert!(next.contains(&format!("Bearer {VALUE}")) && next.ends_with(VALUE), "{next}");
}

#[tokio::test]
async fn a_secret_is_not_sent_where_it_is_not_for() {
    let world = World::new();
    let server = serve(&[ok("x")]).await;
    let grants = grants(&world, &[&server]);
    let local = format!("http://localhost:{}/", server.port());
    for (url, headers, body, words) in [
        (local.as_str(), HEADER, "", "the secret `api` is not for localhost"),
        (&server.url("/?k=${secret:api}"), "", "", "a URL carries no secret"),
        (&server.url("/"), "", "${secret:other}", "there is no secret `other`"),
    ] {
        let why = run(&world, &grants, ASK, &[url, headers, body]).await.unwrap_err();
        assert!(why.starts_with("EACCESS") && why.contains(words), "{url}: {why}");
    }
    assert!(server.requests().is_empty());
}
