//! Tests the model client against misbehaving endpoints.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod cache;
mod client;
mod embeddings;
mod failures;
mod fields;
mod functions;
mod messages;
mod replies;
