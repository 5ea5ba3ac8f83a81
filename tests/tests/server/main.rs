//! The HTTP server from outside: raw bytes over TCP, answers read as they come.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod bounds;
mod chat;
mod client;
mod exec;
mod gate;
mod shutdown;
mod world;
