//! The command port: a command, its outcome, and the traits for running commands.
//!
//! The shell builds a [`Command`] when a word names neither a function nor a builtin, and runs it
//! through [`Commands`]. A command starts other commands through [`Spawn`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::Files;

use crate::bounds::{StageBounds, amount};
use crate::language::paths::absolute;
use crate::stream::Stream;

/// A command with its environment, ready to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The name and the arguments.
    pub argv: Vec<String>,
    /// The exported variables.
    pub env: Vec<(String, String)>,
    /// The working directory: an absolute path in the run's files.
    pub cwd: String,
    /// The numbers and streams of the open descriptors. All other descriptors are closed.
    pub fds: Vec<(u32, Stream)>,
}

impl Command {
    /// Returns the command's name, which is the last component of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        let word = self.argv.first().map_or("", String::as_str);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// Returns true if an argument names `path` as an absolute path. The C library passes all paths
    /// relative to the root, so the host cannot otherwise distinguish `/etc/x` from `etc/x`.
    ///
    /// For writing, the path must be an argument of its own, or a parent or descendant of one, such
    /// as a parent that `mkdir -p` creates. For reading, the path may appear anywhere in an
    /// argument, such as in an awk program.
    pub(crate) fn names(&self, path: &str, write: bool) -> bool {
        let path = absolute("/", path);
        let is_related = |named: &str| {
            let path = Path::new(&path);
            let named = Path::new(named);
            path.starts_with(named) || (write && named.starts_with(path))
        };
        self.argv.iter().skip(1).any(|word| {
            let operand = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            (!write && word.match_indices(&path).any(|(at, _)| begins_path(word, at)))
                || [word.as_str(), operand].iter().any(|word| {
                    let named = word.starts_with('/').then(|| absolute("/", word));
                    named.is_some_and(|named| named != "/" && is_related(&named))
                })
        })
    }

    /// Returns the stream of a descriptor, if it is open.
    #[must_use]
    pub fn fd(&self, number: u32) -> Option<&Stream> {
        self.fds.iter().rev().find(|(open, _)| *open == number).map(|(_, stream)| stream)
    }
}

/// Returns true if the `/` at the index `at` of a word begins an absolute path, and does not
/// continue a relative one.
fn begins_path(word: &str, at: usize) -> bool {
    let before = word.split_at(at).0;
    !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Exit status of a command. 0 means success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Status of a successful command.
    pub const SUCCESS: Status = Status(0);
    /// Status of a command that exceeded its time limit.
    pub const TIMED_OUT: Status = Status(124);
    /// Status of a command that exists but cannot be run.
    pub const CANNOT_RUN: Status = Status(126);
    /// Status of a command that does not exist.
    pub const NOT_FOUND: Status = Status(127);

    /// Returns true if the status is 0.
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

/// Result of running a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The command exited on its own, with a status.
    Exited(Status),
    /// The host ended the command.
    Killed(KillReason),
}

/// Reason why the host ended a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillReason {
    /// The command wrote to a pipe without a reader, as in `yes | head -1`.
    Pipe,
    /// The command needed more than this many bytes of memory.
    Memory(usize),
    /// The command used more than this much processor time.
    Time(Duration),
    /// The account of the command's run has no memory or time left. The string is the account's
    /// message.
    Account(String),
    /// The command trapped. The string contains the reason.
    Crash(String),
    /// The command failed to start. The string contains the reason.
    Start(String),
    /// The command's caller cancelled it.
    Cancelled,
}

impl CommandOutcome {
    /// Returns the exit status that the shell reports for this outcome.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            CommandOutcome::Exited(status) => *status,
            CommandOutcome::Killed(KillReason::Pipe) => Status(141),
            CommandOutcome::Killed(
                KillReason::Memory(_) | KillReason::Account(_) | KillReason::Cancelled,
            ) => Status(137),
            CommandOutcome::Killed(KillReason::Time(_)) => Status(152),
            CommandOutcome::Killed(KillReason::Crash(_)) => Status(134),
            CommandOutcome::Killed(KillReason::Start(_)) => Status::CANNOT_RUN,
        }
    }

    /// Returns true if the whole pipeline must end when the command ends with this outcome.
    #[must_use]
    pub fn ends_pipeline(&self) -> bool {
        matches!(
            self,
            CommandOutcome::Killed(
                KillReason::Memory(_)
                    | KillReason::Time(_)
                    | KillReason::Account(_)
                    | KillReason::Crash(_)
                    | KillReason::Start(_)
            )
        )
    }
}

/// Formats the message for the command's standard error. The message is empty for a broken pipe and
/// for a cancelled command.
impl fmt::Display for KillReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillReason::Pipe | KillReason::Cancelled => Ok(()),
            KillReason::Memory(bytes) => write!(f, "killed: out of memory ({})", amount(*bytes)),
            KillReason::Time(time) => {
                write!(f, "killed: used up its {} s of processor time", time.as_secs_f64())
            }
            KillReason::Account(reason) => write!(f, "killed: {reason}"),
            KillReason::Crash(reason) => write!(f, "crashed: {reason}"),
            KillReason::Start(reason) => write!(f, "cannot be run: {reason}"),
        }
    }
}

/// The interface that commands such as `xargs`, `find -exec`, `env` and `timeout` use to run other
/// commands. The shell implements it.
pub trait Spawn: Send + Sync {
    /// Runs a command to completion and returns its status. If the command cannot run, writes the
    /// reason to its standard error. If the command is still running after `timeout`, ends it and
    /// returns [`Status::TIMED_OUT`].
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status>;
}

/// A set of commands that are neither functions nor builtins of the shell. The
/// [toolbox](crate::Toolbox) is such a set; tests provide their own.
pub trait Commands: Send + Sync {
    /// Returns the names of all commands.
    fn names(&self) -> Vec<String>;

    /// Returns true if there is a command with that name.
    fn has(&self, name: &str) -> bool;

    /// Runs a command to completion, within `bounds`. The command starts other commands through
    /// `spawn`.
    fn run<'a>(
        &'a self,
        command: Command,
        files: &'a Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: &'a StageBounds,
    ) -> BoxFuture<'a, CommandOutcome>;
}

/// An empty set of commands: the shell has only its builtins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCommands;

impl Commands for NoCommands {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn has(&self, _: &str) -> bool {
        false
    }

    fn run<'a>(
        &'a self,
        _: Command,
        _: &'a Arc<Files>,
        _: Arc<dyn Spawn>,
        _: &'a StageBounds,
    ) -> BoxFuture<'a, CommandOutcome> {
        async { CommandOutcome::Exited(Status::NOT_FOUND) }.boxed()
    }
}
