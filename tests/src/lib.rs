//! What end-to-end tests stand on: a chat-completions endpoint that a test scripts, and a world to run agents in.

pub mod provider;
mod scripted;
mod world;

pub use scripted::{Scripted, calls};
pub use world::World;
