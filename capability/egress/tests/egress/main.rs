//! Tests of the way out: what is decided before anything is sent (`policy`), what is sent and
//! received (`requests`), and that there is no other way (`one_way_out`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod one_way_out;
mod policy;
mod requests;
