//! A command: what the shell asks for when a word is neither a function nor a builtin.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::stream::Stream;

/// One command, ready to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The name and the arguments.
    pub argv: Vec<String>,
    /// The exported variables.
    pub env: Vec<(String, String)>,
    /// The working directory: absolute, in the run's tree.
    pub cwd: String,
    /// The descriptors by number. Those that are not named are closed.
    pub fds: Vec<(u32, Stream)>,
}

impl Command {
    /// The name that the command goes by: the last part of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        let word = self.argv.first().map_or("", String::as_str);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// What stands behind a descriptor.
    #[must_use]
    pub fn fd(&self, number: u32) -> Option<&Stream> {
        self.fds.iter().rev().find(|(held, _)| *held == number).map(|(_, stream)| stream)
    }
}

/// How a command ended: 0 is success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// It did what it was asked for.
    pub const SUCCESS: Status = Status(0);
    /// It ran out of the time that it was given.
    pub const TIMED_OUT: Status = Status(124);
    /// It is there and cannot be run.
    pub const CANNOT_RUN: Status = Status(126);
    /// There is no such command.
    pub const NOT_FOUND: Status = Status(127);

    /// Whether it is 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Runs commands on behalf of commands: `xargs`, `find -exec`, `env`, `timeout`. The shell is one.
pub trait Spawn: Send + Sync {
    /// Runs a command to its end. What keeps it from running is told on its standard error and by its status; past `timeout` it is ended
    /// and its status is [`Status::TIMED_OUT`].
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status>;
}
