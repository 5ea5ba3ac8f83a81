//! The shell's language.
//!
//! `parse` parses a script into the syntax tree that `ast` defines. `exec` runs the tree, `command`
//! its simple commands, `redirect` their redirections; `expand` expands words, and `builtins`
//! implements the shell's own commands. These modules add methods to `Interpreter`, which holds the
//! state of one shell. `Run` holds the state that all shells of a session share.
//!
//! The modules are declared in groups. A module imports only from its own group and from earlier
//! groups.

mod ast;
mod escape;
mod options;
pub(crate) mod paths;
mod pattern;
mod variables;

mod parse;

mod interpreter;
mod jobs;
mod run;
mod task;
mod values;

mod arithmetic;
mod builtins;
mod command;
mod exec;
mod expand;
mod redirect;
mod session;
mod test;

pub use session::{Output, Session, Shell, Stdio};
