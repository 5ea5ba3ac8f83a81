//! Tests of hostile requests: each request is rejected with the message in its row of
//! `data/hostile/requests.txt` before anything is sent.

use std::sync::Arc;

use wattle_capability::egress::{Egress, Policy};
use wattle_capability::http::Http;
use wattle_rt::Exit;

use super::site::Script;
use crate::world::World;

/// The host names that a hostile resolver can resolve, each with the addresses that the resolver
/// returns for it.
const NAMES: &[(&str, &[&[&str]])] = &[
    ("loop.example", &[&["127.0.0.1"]]),
    ("mixed.example", &[&["93.184.216.34", "10.0.0.1"]]),
    ("six.example", &[&["::1"]]),
    ("mapped.example", &[&["::ffff:127.0.0.1"]]),
    ("compatible.example", &[&["::127.0.0.1"]]),
    ("translated.example", &[&["64:ff9b::7f00:1"]]),
    ("sixtofour.example", &[&["2002:7f00:1::1"]]),
    ("teredo.example", &[&["2001:0:7f00:1::1"]]),
    ("private.example", &[&["192.168.1.1"]]),
    ("carrier.example", &[&["100.64.0.1"]]),
    ("link.example", &[&["fe80::1"]]),
    ("unique.example", &[&["fd00::1"]]),
    ("cloud.example", &[&["169.254.169.254"]]),
    ("zero.example", &[&["0.0.0.0"]]),
    ("many.example", &[&["224.0.0.1"]]),
    ("empty.example", &[&[]]),
];

const ASK: &str = "(ret (http.request? (arg 0) (arg 1) (arg 2) \"\"))";

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused_before_anything_is_sent() {
    let world = World::new();
    let egress = Egress::with_resolver(Policy::default(), Script::new(NAMES));
    let grants = Arc::new((*world.grants()).clone().with(Http::new(Arc::new(egress))));
    let handle = tokio::runtime::Handle::current();
    let rows = tokio::task::block_in_place(|| {
        super::rows::check("requests.txt", |parts| {
            let headers = parts.get(2).map_or("", String::as_str);
            let outcome = handle
                .block_on(world.run_granted(ASK, &[&parts[0], &parts[1], headers], &grants))
                .unwrap();
            let Exit::Returned(code) = outcome.exit else {
                panic!("{parts:?}: {:?}", outcome.exit)
            };
            let failure = outcome.failure.unwrap_or_else(|| panic!("{parts:?} is not refused"));
            format!("{}: {}", code.name().unwrap(), failure.failure.reason)
        })
    });
    assert!(rows >= 60, "only {rows} rows were read");
}
