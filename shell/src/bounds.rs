//! Resource limits for a script, and for each command that it runs.

use std::time::Duration;

use wattle_rt::Account;

/// Resource limits for a script. If a limit is exceeded, the script ends or the current command
/// fails, with an error message. The session remains usable.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Maximum size of a script, in bytes. Default 1 MiB.
    pub script: usize,
    /// Time limit of a script if its caller passes none. Default 10 minutes.
    pub deadline: Duration,
    /// Maximum number of commands that a script may start, including subshells and jobs, but not
    /// builtins. Default 100,000.
    pub commands: u64,
    /// Maximum number of pipeline stages, jobs and process substitutions that run at the same time.
    /// Default 64.
    pub parallel: usize,
    /// Maximum nesting depth of functions, subshells, substitutions and sourced scripts. Default
    /// 200.
    pub depth: u32,
    /// Maximum size of the variables of a session and its subshells, in bytes. Default 16 MiB.
    pub variables: u64,
    /// Maximum size of the syntax trees of a session and its subshells, in bytes. They belong to
    /// the running scripts and the defined functions. A command of a few words takes less than
    /// 1 KiB. Default 64 MiB.
    pub trees: u64,
    /// Maximum size of a command substitution's output, in bytes. Default 4 MiB.
    pub substitution: usize,
    /// Maximum number of words in one command. Default 200,000.
    pub words: usize,
    /// Maximum number of open descriptors. Default 256.
    pub descriptors: usize,
    /// Limits for each toolbox command.
    pub stage: StageBounds,
    /// Maximum number of bytes that [`Shell::capture`](crate::Shell::capture) keeps of each output
    /// stream: half from its start and half from its end. Default 1 MiB.
    pub output: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            script: 1 << 20,
            deadline: Duration::from_secs(600),
            commands: 100_000,
            parallel: 64,
            depth: 200,
            variables: 16 << 20,
            trees: 64 << 20,
            substitution: 4 << 20,
            words: 200_000,
            descriptors: 256,
            stage: StageBounds::default(),
            output: 1 << 20,
        }
    }
}

/// Resource limits for a stage, which is one command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageBounds {
    /// Maximum memory, in bytes; at most 1 GiB. Default 64 MiB.
    pub memory: usize,
    /// Maximum processor time. Time spent waiting does not count. Default 30 s.
    pub time: Duration,
    /// Maximum number of open descriptors. Default 1,024.
    pub descriptors: usize,
    /// Account of the run that the command belongs to. The command's memory and processor time are
    /// charged to it, as is the memory of the shell itself. None by default.
    pub account: Option<Account>,
}

impl Default for StageBounds {
    fn default() -> StageBounds {
        StageBounds {
            memory: 64 << 20,
            time: Duration::from_secs(30),
            descriptors: 1024,
            account: None,
        }
    }
}

/// Formats a number of bytes: in MiB if it is a whole number of MiB, otherwise in KiB, rounded up.
pub(crate) fn amount(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or(u64::MAX);
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes.div_ceil(1024))
    }
}
