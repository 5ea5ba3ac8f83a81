//! Fixtures for end-to-end tests: a scripted chat-completions endpoint, a scripted model, a host
//! with a store and a workdir, a proxy that can cut connections, and a conformance test for
//! journals.

pub mod journal;
mod plain;
pub mod provider;
pub mod proxy;
mod scripted;
mod store;
mod world;

pub use plain::plain;
pub use scripted::{Scripted, calls};
pub use store::empty_store;
pub use world::{Job, World, built_in_host, engine};
