//! Tests of search engines: requests, parsed responses and reported failures.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::web::{Engine, EngineKind, EngineSettings, Web};
use wattle_rt::{Code, Outcome};

use super::{Server, answer, serve};
use crate::world::World;

const KEY: &str = "brave-secret-0123";

/// Returns an engine at `server`, which the engine's own client can reach but programs cannot.
fn engine(kind: EngineKind, server: &Server) -> Result<Engine, String> {
    let settings = EngineSettings { kind, url: Some(&server.base), key_variable: "SEARCH_KEY" };
    let key = |name: &str| (name == "SEARCH_KEY").then(|| KEY.to_owned());
    Engine::new(&settings, &Egress::new(Policy::default()), key)
}

async fn ask(engine: Result<Engine, String>, query: &str) -> Outcome {
    let world = World::new();
    let grants = Arc::new((*world.grants()).clone().with(Web::new(engine.map(Arc::new))));
    world.run_granted("(ret (web.search? (arg 0)))", &[query], &grants).await.unwrap()
}

fn hits(outcome: &Outcome) -> Vec<Json> {
    assert!(outcome.success(), "{:?}", outcome.failure);
    serde_json::from_str(&outcome.texts()[0]).unwrap()
}

fn reason(outcome: &Outcome) -> (Code, String) {
    let failure = &outcome.failure.as_ref().unwrap().failure;
    (failure.code, failure.reason.clone())
}

#[tokio::test]
async fn each_kind_has_its_own_request_and_parser() {
    let searx = json!({"results": [
        {"title": "A <b>cat</b>", "url": "https://a.example/", "content": "It &amp; more"},
    ]});
    let brave = json!({"web": {"results": [{
        "title": "A cat",
        "url": "https://a.example",
        "description": "It <strong>&amp;</strong> more",
    }]}});
    for (kind, body, line, header) in [
        (
            EngineKind::Searxng,
            searx.to_string(),
            "GET /search?q=big+cats+%26&format=json HTTP/1.1",
            None,
        ),
        (
            EngineKind::Brave,
            brave.to_string(),
            "GET /?q=big+cats+%26&count=8 HTTP/1.1",
            Some(format!("x-subscription-token: {KEY}")),
        ),
        (
            EngineKind::Page,
            "<h2><a href='https://a.example/'>A cat</a></h2><p>It &amp; more</p>".to_owned(),
            "GET /?q=big+cats+%26 HTTP/1.1",
            None,
        ),
    ] {
        let server = serve(vec![answer("200 OK", "", body.as_bytes())]);
        let found = hits(&ask(engine(kind, &server), " big  cats & ").await);
        assert_eq!(found[0]["url"], "https://a.example/", "{kind}");
        assert_eq!(found[0]["title"], "A cat", "{kind}");
        if kind != EngineKind::Page {
            assert_eq!(found[0]["snippet"], "It & more", "{kind}");
        }
        let request = server.requests.lock().unwrap()[0].clone();
        assert!(request.starts_with(line), "{request}");
        assert_eq!(
            header.is_some_and(|header| request.contains(&header)),
            kind == EngineKind::Brave,
            "{request}"
        );
    }
}

#[tokio::test]
async fn results_pages_are_parsed() {
    let page = |name: &str| {
        std::fs::read(format!("{}/tests/web/results/{name}.html", env!("CARGO_MANIFEST_DIR")))
            .unwrap()
    };
    let duck = json!([
        {
            "title": "Cats & dogs",
            "url": "https://a.example/cats?x=1",
            "snippet": "They sleep all day.",
        },
        {"title": "Plain link", "url": "https://b.example/", "snippet": "Second one."},
    ]);
    let generic = json!([
        {"title": "One", "url": "https://a.example/one", "snippet": "First snippet."},
        {"title": "Two", "url": "https://a.example/two", "snippet": "Second snippet."},
    ]);
    for (name, expected) in [
        ("duck", Ok(duck)),
        ("generic", Ok(generic)),
        ("none", Ok(json!([]))),
        ("captcha", Err("a person asks")),
    ] {
        // The engine's links for counting clicks must refer to the test server.
        let body = String::from_utf8(page(name)).unwrap().replace("//duckduckgo.com", "");
        let server = serve(vec![answer("200 OK", "content-type: text/html\r\n", body.as_bytes())]);
        let outcome = ask(engine(EngineKind::Page, &server), "cats").await;
        match expected {
            Ok(expected) => assert_eq!(Json::from(hits(&outcome)), expected, "{name}"),
            Err(words) => {
                assert!(reason(&outcome).1.contains(words), "{name}: {:?}", reason(&outcome))
            }
        }
    }
}

#[tokio::test]
async fn failures_are_reported() {
    let json = "content-type: application/json\r\n";
    let moved = "location: https://elsewhere.example/\r\n";
    for (kind, status, headers, body, words) in [
        (EngineKind::Searxng, "200 OK", json, "{\"results\": [", "something that is not its JSON"),
        (
            EngineKind::Searxng,
            "200 OK",
            "",
            "<html><title>Please log in</title>",
            "not its JSON: \"Please log in\"",
        ),
        (EngineKind::Searxng, "200 OK", json, "", "not its JSON: nothing"),
        (EngineKind::Searxng, "200 OK", json, "{\"error\":\"no\"}", "answered with an error"),
        (EngineKind::Searxng, "403 Forbidden", "", "", "must allow the format `json`"),
        (
            EngineKind::Brave,
            "429 Too Many",
            "retry-after: 7\r\n",
            "",
            "limits requests (status 429, retry after 7)",
        ),
        (EngineKind::Brave, "401 No", "", "", "check the key"),
        (EngineKind::Brave, "500 Oops", "", "brave-secret-0123", "status 500"),
        (EngineKind::Brave, "200 OK", json, "brave-secret-0123", "not its JSON: \"***\""),
        (EngineKind::Page, "403 Forbidden", "", "", "configure another engine"),
        (EngineKind::Page, "302 Found", moved, "", "elsewhere.example"),
    ] {
        let server = serve(vec![answer(status, headers, body.as_bytes())]);
        let (code, why) = reason(&ask(engine(kind, &server), "cats").await);
        assert_eq!(code, Code::EREMOTE, "{why}");
        assert!(why.contains(words) && !why.contains(KEY), "{status} {body}: {why}");
    }
    let server = serve(vec![answer("200 OK", json, b"{}")]);
    assert!(hits(&ask(engine(EngineKind::Searxng, &server), "cats").await).is_empty());
    for query in ["", "  ", &"x".repeat(401)] {
        assert_eq!(reason(&ask(engine(EngineKind::Searxng, &server), query).await).0, Code::EBOUND);
    }
    let none = ask(Err("no search engine is set up; set `search.engine`".to_owned()), "cats").await;
    assert_eq!(
        reason(&none),
        (Code::EACCESS, "no search engine is set up; set `search.engine`".to_owned())
    );
}

#[tokio::test]
async fn a_thousand_results_are_reduced_to_eight_good_ones() {
    let bad = ["javascript:x()", "", "not a url", "file:///etc/passwd"];
    let results = (0..1_000).map(|n| {
        let url = bad
            .get(n)
            .map_or_else(|| format!("https://a.example/{}", n / 2), |bad| (*bad).to_owned());
        json!({"title": "t".repeat(5_000), "url": url, "content": "word ".repeat(2_000)})
    });
    let body = json!({"results": results.collect::<Vec<_>>()}).to_string();
    assert!(body.len() > 4 << 20);
    let parsed = serde_json::from_str::<Json>(&body).unwrap();
    let few = json!({"results": parsed["results"].as_array().unwrap()[..50]}).to_string();
    let server = serve(vec![answer("200 OK", "", few.as_bytes())]);
    let found = hits(&ask(engine(EngineKind::Searxng, &server), "cats").await);
    let urls: Vec<&str> = found.iter().map(|hit| hit["url"].as_str().unwrap()).collect();
    assert_eq!(urls, (2..10).map(|n| format!("https://a.example/{n}")).collect::<Vec<_>>());
    let length = |key: &str| found[0][key].as_str().unwrap().chars().count();
    assert!(
        length("title") <= 202 && length("snippet") <= 402,
        "{} {}",
        length("title"),
        length("snippet")
    );
    // The response exceeds the maximum size.
    let server = serve(vec![answer("200 OK", "", body.as_bytes())]);
    let (code, why) = reason(&ask(engine(EngineKind::Searxng, &server), "cats").await);
    assert_eq!(code, Code::EREMOTE);
    assert!(why.contains("4194304"), "{why}");
}

#[tokio::test]
async fn invalid_settings_are_reported() {
    let egress = Egress::new(Policy::default());
    for (kind, url, key, words) in [
        (EngineKind::Searxng, None, None, "set `search.url`"),
        (EngineKind::Searxng, Some("searx.example"), None, "`search.url`"),
        (EngineKind::Page, Some("ftp://x"), None, "http"),
        (EngineKind::Page, Some("https://me:pass@x/"), None, "user name or password"),
        (EngineKind::Brave, None, None, "the variable `KEY` is empty"),
        (EngineKind::Brave, None, Some("two words"), "a valid key"),
    ] {
        let settings = EngineSettings { kind, url, key_variable: "KEY" };
        let why = Engine::new(&settings, &egress, |_| key.map(str::to_owned)).unwrap_err();
        assert!(
            why.contains(words) && !why.contains("pass@") && !why.contains("two words"),
            "{why}"
        );
    }
    let shown = format!(
        "{:?}",
        Engine::new(
            &EngineSettings { kind: EngineKind::Brave, url: None, key_variable: "K" },
            &egress,
            |_| Some(KEY.to_owned())
        )
    );
    assert!(shown.contains("api.search.brave.com") && !shown.contains(KEY), "{shown}");
    for (url, expected) in [
        ("http://s.example", "http://s.example/search"),
        ("http://s.example/x/search/", "http://s.example/x/search/"),
    ] {
        let settings =
            EngineSettings { kind: EngineKind::Searxng, url: Some(url), key_variable: "" };
        assert_eq!(Engine::new(&settings, &egress, |_| None).unwrap().url().as_str(), expected);
    }
}
