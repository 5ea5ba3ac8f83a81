//! The loop of a run as a WebAssembly component: the host's side of `agent/machine/wit/engine.wit`.
//!
//! A [`Component`] is a compiled engine. [`Component::start`] returns an [`Instance`] for one run,
//! which takes inputs and returns effects like [`wattle_machine::step`]: each call of the engine that
//! takes time ends a turn. The instance counts the steps and the usage itself, and ends a run whose
//! engine breaks a rule or a limit. Nothing else of the process is affected.
//!
//! The crate performs nothing: it knows no model, no store and no files.

mod component;
mod convert;
mod guest;
mod instance;
mod wasi;
mod wit;

pub use component::{Bounds, Component, ComponentError, MAX_BINARY, RunFacts};
pub use instance::Instance;
