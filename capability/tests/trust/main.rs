//! Tests the host's defences against hostile repositories, endpoints, servers, paths and requests.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "tests may panic"
)]

#[path = "../../egress/tests/requests/site.rs"]
#[allow(dead_code, reason = "each test file uses a part of it")]
mod site;
#[path = "../world/mod.rs"]
mod world;

mod git;
mod image;
mod paths;
mod requests;
mod rows;
mod secrets;
