//! Tests the model client against misbehaving endpoints.

mod cache;
mod client;
mod embeddings;
mod failures;
mod fields;
mod functions;
mod messages;
mod replies;
