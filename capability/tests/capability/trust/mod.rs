//! Tests the host's defences against hostile repositories, endpoints, servers, paths and requests.

#[path = "../../../egress/tests/egress/requests/site.rs"]
#[allow(dead_code, reason = "each test file uses a part of it")]
mod site;

mod git;
mod image;
mod paths;
mod requests;
mod rows;
mod secrets;
