//! The HTTP server from outside, tested with raw bytes over TCP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod bounds;
mod chat;
mod client;
mod exec;
mod gate;
mod resume;
mod shutdown;
mod world;
