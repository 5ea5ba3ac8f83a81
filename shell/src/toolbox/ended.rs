//! How a stage ended, and the words for it.

use std::fmt;
use std::time::Duration;

use wattle_rt::Account;

use crate::command::Status;

/// Bounds of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageBounds {
    /// The most memory that it may have, in bytes; at most 1 GiB. Default 64 MiB.
    pub memory: usize,
    /// The time that it may keep a processor busy; waiting costs nothing. Default 30 s.
    pub time: Duration,
    /// The most descriptors that it may have open. Default 1,024.
    pub descriptors: usize,
    /// The account of the run whose command it is: its memory is held there, its time spent. Default none.
    pub account: Option<Account>,
}

impl Default for StageBounds {
    fn default() -> StageBounds {
        StageBounds { memory: 64 << 20, time: Duration::from_secs(30), descriptors: 1024, account: None }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with a status.
    Exited(Status),
    /// By the host.
    Killed(Killed),
}

/// Why the host ended a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Killed {
    /// It wrote to a pipe that nobody reads any more, as `yes | head -1` does.
    Pipe,
    /// It needed more than this many bytes of memory.
    Memory(usize),
    /// It kept a processor busy for longer than this.
    Time(Duration),
    /// The account of its run has no memory or time left.
    Account(String),
    /// It met a case that it cannot go on from.
    Crash(String),
    /// It could not be started.
    Start(String),
    /// Whoever ran it gave up on it.
    Cut,
}

impl Ended {
    /// The status that a shell shows.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Ended::Exited(status) => *status,
            Ended::Killed(Killed::Pipe) => Status(141),
            Ended::Killed(Killed::Memory(_) | Killed::Account(_) | Killed::Cut) => Status(137),
            Ended::Killed(Killed::Time(_)) => Status(152),
            Ended::Killed(Killed::Crash(_)) => Status(134),
            Ended::Killed(Killed::Start(_)) => Status::CANNOT_RUN,
        }
    }

    /// Whether the pipeline that it is a stage of cannot have a meaning without it.
    #[must_use]
    pub fn ends_pipeline(&self) -> bool {
        matches!(
            self,
            Ended::Killed(
                Killed::Memory(_) | Killed::Time(_) | Killed::Account(_) | Killed::Crash(_) | Killed::Start(_)
            )
        )
    }
}

/// What is said on the command's standard error; nothing where nobody has to know.
impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Killed::Pipe | Killed::Cut => Ok(()),
            Killed::Memory(bytes) => write!(f, "killed: out of memory ({})", amount(*bytes)),
            Killed::Time(time) => write!(f, "killed: used up its {} s of processor time", time.as_secs_f64()),
            Killed::Account(why) => write!(f, "killed: {why}"),
            Killed::Crash(why) => write!(f, "crashed: {why}"),
            Killed::Start(why) => write!(f, "cannot be run: {why}"),
        }
    }
}

fn amount(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes.div_ceil(1024)) }
}

/// Why there is no toolbox.
#[derive(Debug, thiserror::Error)]
#[error("the shell's commands cannot be loaded: {0}")]
pub struct ToolboxError(pub(super) String);
