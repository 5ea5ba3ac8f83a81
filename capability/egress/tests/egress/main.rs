//! Tests of outgoing requests: what is decided before anything is sent (`policy`), what is sent and
//! received (`requests`), and that no other code sends requests (`one_way_out`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod one_way_out;
mod policy;
mod requests;
