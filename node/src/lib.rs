//! The native module of the npm package `wattle-agent`.
//!
//! Its classes and functions are private to the package: `wattle-agent/lib` gives them the form that
//! applications use. Values cross as JSON text, which is faster than object by object.

mod agent;
mod command;
mod fault;
mod handle;
mod link;
mod program;
mod tool;

pub use command::command;
pub use program::{apply, changes, compute, file, run};
