//! The shell's language.
//!
//! `parse` parses a script into the syntax tree that `ast` defines. `exec` runs the tree, `expand`
//! expands its words, and `builtins` implements the shell's own commands. These three modules add
//! methods to `Interpreter`, which holds the state of one shell. `Run` holds the state that all
//! shells of a session share.
//!
//! The modules are declared in groups. A module imports only from its own group and from earlier
//! groups.

mod arithmetic;
mod ast;
mod builtin_table;
mod escape;
pub(crate) mod paths;
mod pattern;
mod setting;
mod variables;

mod parse;

mod interpreter;
mod jobs;
mod options;
mod run;
mod task;

mod builtins;
mod exec;
mod expand;
mod session;

pub use session::{Output, Session, Shell, Stdio};
