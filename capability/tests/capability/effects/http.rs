//! Tests of concurrent requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use wattle_capability::http::Http;
use wattle_rt::Code;

use super::site::Slow;
use super::{failure, json};
use crate::world::World;

const ALL: &str = r#"
    (local $a i32) (local $e i32)
    (argv 0 $urls)
    (call $arr.from_json (local.get $urls)) (local.set $e) (local.set $a) (check $e)
    (call $http.get_all (local.get $a)) (local.set $e) (local.set $a) (check $e)
    (call $arr.to_json (local.get $a)) (local.set $e) (local.set $a)
    (resv $a) (i32.const 0)"#;

#[tokio::test]
async fn each_url_has_its_answer_or_its_fault_in_order() {
    let world = World::new();
    let site = Slow::new(Duration::ZERO);
    let grants = Arc::new((*world.grants()).clone().with(Http::new(site)));
    let urls = json!([
        "http://s/a",
        "http://s/404",
        "http://s/broken",
        "",
        "http://s/bytes",
        "http://s/a"
    ])
    .to_string();
    let outcome = world.run_granted(ALL, &[&urls], &grants).await.unwrap();
    let items: Vec<serde_json::Value> = json(&outcome)
        .as_array()
        .unwrap()
        .iter()
        .map(|i| serde_json::from_str(i.as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(
        items,
        [
            json!({"url": "http://s/a", "status": 200, "body": "a"}),
            json!({
                "url": "http://s/404", "status": 404, "code": "EREMOTE",
                "error": "http://s/404 answered with status 404: no such page",
            }),
            json!({"url": "http://s/broken", "code": "EREMOTE", "error": "the connection broke"}),
            json!({"url": "", "status": 200, "body": ""}),
            json!({"url": "http://s/bytes", "status": 200, "body": "\u{fffd}a"}),
            json!({"url": "http://s/a", "status": 200, "body": "a"}),
        ]
    );
    let none = world.run_granted(ALL, &["[]"], &grants).await.unwrap();
    assert_eq!(json(&none), json!([]));
    let no_array =
        "(local $e i32) (call $http.get_all (i32.const 7)) (local.set $e) (drop) (local.get $e)";
    assert_eq!(failure(&world.run_granted(no_array, &[], &grants).await.unwrap()).0, Code::EBOUND);
}

#[tokio::test]
async fn a_hundred_urls_take_the_time_of_seven() {
    let world = World::new();
    let site = Slow::new(Duration::from_millis(50));
    let grants = Arc::new((*world.grants()).clone().with(Http::new(Arc::clone(&site) as _)));
    let urls: Vec<String> = (0..100).map(|n| format!("http://s/{n}")).collect();
    let started = Instant::now();
    let outcome = world.run_granted(ALL, &[&json!(urls).to_string()], &grants).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(json(&outcome).as_array().unwrap().len(), 100);
    assert_eq!(site.peak.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn the_grant_limits_concurrent_requests() {
    let world = World::new();
    let site = Slow::new(Duration::from_millis(1));
    let http = Http { backend: Arc::clone(&site) as _, max_concurrent: NonZeroUsize::MIN };
    let grants = Arc::new((*world.grants()).clone().with(http));
    let urls: Vec<String> = (0..10).map(|n| format!("http://s/{n}")).collect();
    let outcome = world.run_granted(ALL, &[&json!(urls).to_string()], &grants).await.unwrap();
    assert!(outcome.success());
    assert_eq!(site.peak.load(Ordering::SeqCst), 1);
}
