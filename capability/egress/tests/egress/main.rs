//! Tests of outgoing requests: the checks before anything is sent (`policy`), the requests and
//! their responses (`requests`), and the rule that no other code sends requests (`one_way_out`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod one_way_out;
mod policy;
mod requests;
