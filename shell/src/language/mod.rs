//! The shell's language.
//!
//! `parse` reads a script into the tree of `ast`. `exec` runs it, `expand` expands its words, and
//! `builtins` are the commands of the shell itself. All three are methods of `interpreter`, which is
//! the state of one shell; `run` is the state that all shells of a session share. Each module
//! imports only those above it in the list below.

mod arithmetic;
mod ast;
mod builtin_table;
mod escape;
mod paths;
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
