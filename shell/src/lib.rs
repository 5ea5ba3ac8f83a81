//! The shell: a line of commands, run as WebAssembly instances over the run's files. No process of the operating system stands behind it.
//!
//! `language/` reads a script and carries it out; `command.rs` is what it asks for when a word is no function and no builtin; `toolbox/` runs
//! that in an instance of its own, on a preview-1 host (`wasi/`) over the run's [`Files`](wattle_capability::files::Files); `stream.rs` is what
//! stands behind descriptors: pipes, files, devices.

mod bounds;
mod command;
mod commands;
mod errno;
mod language;
mod port;
mod stream;
mod toolbox;

pub use bounds::Bounds;
pub use command::{Command, Spawn, Status};
pub use commands::{Commands, NoCommands};
pub use errno::{Errno, Fault};
pub use language::{Output, Session, Shell, Stdio};
pub use stream::{Captured, Device, OpenHow, Stream, StreamKind};
pub use toolbox::{Ended, Killed, StageBounds, Toolbox, ToolboxError};
