//! A shell that runs scripts on a run's files. Its commands are WebAssembly instances, so it starts
//! no operating system processes.
//!
//! Each module imports only modules listed above it:
//!
//! - `errno`: error numbers and their messages.
//! - `bounds`: resource limits for a script and for a command.
//! - `lock`: locks that ignore poisoning.
//! - `ledger`: counters of the memory that the shells of a session hold.
//! - `stream`: the streams behind descriptors: pipes, files, devices.
//! - `command`: the port through which the shell runs a command.
//! - `toolbox`: the bundled commands. Each runs in its own instance, on a WASI preview 1 host that
//!   serves the run's [`Files`](wattle_capability::files::Files).
//! - `language`: the parser, the interpreter and the builtins.
//! - `port`: the implementation of the capability `shell`.

mod bounds;
mod command;
mod errno;
mod language;
mod ledger;
mod lock;
mod port;
mod stream;
mod toolbox;

pub use bounds::{Bounds, StageBounds};
pub use command::{Command, CommandOutcome, Commands, KillReason, NoCommands, Spawn, Status};
pub use errno::{Errno, Fault};
pub use language::{Output, Session, Shell, Stdio};
pub use stream::{CapturedBytes, Device, OpenMode, Stream, StreamKind};
pub use toolbox::{Toolbox, ToolboxError};
