//! What end-to-end tests stand on: a chat-completions endpoint that a test scripts, a world to run
//! agents in, and what every journal does.

pub mod journal;
mod plain;
pub mod provider;
mod scripted;
mod world;

pub use plain::plain;
pub use scripted::{Scripted, calls};
pub use world::World;
