//! The shell's language: a script is read into a tree (`parse`, `ast`) and carried out (`exec`), its words expanded (`expand`), over what one shell
//! knows (`interpreter`, `variables`) and what all shells of a session share (`run`).

mod arithmetic;
mod ast;
mod builtins;
mod escape;
mod exec;
mod expand;
mod interpreter;
mod parse;
mod paths;
mod pattern;
mod run;
mod session;
mod variables;

pub use session::{Output, Session, Shell, Stdio};
