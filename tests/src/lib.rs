//! Fixtures of end-to-end tests: a scripted chat-completions endpoint, a scripted model, a host
//! with store and workdir, and a conformance test for journals.

pub mod journal;
mod plain;
pub mod provider;
mod scripted;
mod world;

pub use plain::plain;
pub use scripted::{Scripted, calls};
pub use world::World;
