//! The command line of this process, and how the process starts the same command again.
//!
//! In a package of another language the command is a library: the arguments are not those of the
//! process, and its executable is an interpreter.

use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// The command line of a process that runs the command.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The arguments. The first is the name of the command.
    pub args: Vec<OsString>,
    /// The program that starts the command again, with the arguments before the command's own. Empty
    /// for the executable of this process.
    pub program: Vec<OsString>,
}

impl Invocation {
    /// Returns the invocation of a process whose executable is the command.
    #[must_use]
    pub fn of_executable() -> Invocation {
        Invocation { args: std::env::args_os().collect(), program: Vec::new() }
    }
}

static CURRENT: OnceLock<Invocation> = OnceLock::new();

/// Sets the invocation of this process. Only the first call counts.
pub(crate) fn set(invocation: Invocation) {
    _ = CURRENT.set(invocation);
}

/// Returns the arguments after the command's name.
pub(crate) fn args() -> impl Iterator<Item = &'static OsString> {
    CURRENT.get().into_iter().flat_map(|current| current.args.iter().skip(1))
}

/// Returns all arguments, of which the first is the command's name.
pub(crate) fn all_args() -> Vec<OsString> {
    CURRENT.get().map(|current| current.args.clone()).unwrap_or_default()
}

/// Returns a process that runs the command again, without arguments.
///
/// # Errors
/// If the system does not know the executable of this process.
pub(crate) fn again() -> io::Result<Command> {
    let program = CURRENT.get().map(|current| current.program.as_slice()).unwrap_or_default();
    match program.split_first() {
        Some((program, before)) => {
            let mut command = Command::new(program);
            command.args(before);
            Ok(command)
        }
        None => Ok(Command::new(std::env::current_exe()?)),
    }
}
