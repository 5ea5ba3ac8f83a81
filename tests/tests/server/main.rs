//! Tests the HTTP server with raw bytes over TCP. The tests are a separate program, because the
//! module `outage` causes failures of the PostgreSQL server that the tests of one process share.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod agents;
mod api;
mod bounds;
mod changes;
mod chat;
mod chunks;
mod client;
mod delegates;
mod exec;
mod files;
mod fork;
mod full;
mod gate;
mod openai;
mod openapi;
mod outage;
mod output;
mod parked;
mod programs;
mod provider;
mod queue;
mod resume;
mod revoked;
mod shares;
mod shutdown;
mod steps;
mod stream;
mod tenants;
mod tree_stream;
mod world;
