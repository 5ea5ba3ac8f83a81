//! The groups of a shell's state. The fields of one group change together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use crate::language::ast::Command;
use crate::ledger::Text;
use crate::stream::Stream;

/// Definitions of functions, aliases and traps.
#[derive(Clone, Default)]
pub(crate) struct Definitions {
    pub(crate) functions: Arc<HashMap<String, Arc<Command>>>,
    pub(crate) aliases: Arc<BTreeMap<String, Text>>,
    pub(crate) traps: BTreeMap<String, Text>,
}

/// Positional parameters.
#[derive(Clone, Default)]
pub(crate) struct Parameters {
    /// `$0`
    pub(crate) name: Arc<str>,
    /// `$1`, `$2`, …. Subshells share them.
    pub(crate) arguments: Arc<Vec<Text>>,
    /// Index of the next option letter that `getopts` reads in the current argument. 0 if `getopts`
    /// has not read an option of this argument yet.
    pub(crate) getopts_offset: usize,
}

impl Parameters {
    /// Returns copies of `$1`, `$2`, ….
    pub(crate) fn words(&self) -> Vec<String> {
        self.arguments.iter().map(|text| text.to_string()).collect()
    }
}

/// Open descriptors.
#[derive(Clone, Default)]
pub(crate) struct Descriptors {
    pub(crate) open: BTreeMap<u32, Stream>,
    /// Descriptors of process substitutions in the current command. They are closed after the
    /// command.
    pub(crate) substitutions: Vec<u32>,
    /// Descriptors that `{name}>` opened or closed. These changes persist after the command.
    pub(crate) persistent: Vec<u32>,
}

/// The working directory, and the folders that `pushd` remembers.
#[derive(Clone, Default)]
pub(crate) struct Folders {
    /// The working directory: an absolute path in the run's files.
    pub(crate) current: String,
    /// Folders remembered by `pushd`, most recent first.
    pub(crate) stack: Vec<String>,
}

/// Results of the previous command.
#[derive(Clone, Default)]
pub(crate) struct LastCommand {
    /// `$?`
    pub(crate) status: u8,
    /// Status of the previous command substitution. A command that consists only of assignments
    /// returns this status.
    pub(crate) substitution_status: u8,
    /// `$_`, or `None` if there was not enough memory left to store it.
    pub(crate) word: Option<Text>,
    /// If true, the host ended the previous command in a way that also ends its pipeline.
    pub(crate) killed: bool,
}

/// Position of the shell in the running script.
#[derive(Clone, Default)]
pub(crate) struct Execution {
    /// Number of the script that the shell runs, as returned by `Run::begin`.
    pub(crate) script: u64,
    /// Line of the current command.
    pub(crate) line: u32,
    /// Names of the running functions, the innermost last.
    pub(crate) calls: Vec<String>,
    /// Number of enclosing loops in the current function.
    pub(crate) loops: u32,
    /// Number of enclosing sourced scripts.
    pub(crate) sourced: u32,
    /// Nesting depth of functions, subshells, substitutions and evaluated strings.
    pub(crate) depth: u32,
    /// Nesting depth of commands on the current task's host stack.
    pub(crate) stack_level: u32,
    /// Number of enclosing constructs that check for failure, such as `if` and `&&`. While it is
    /// not 0, `set -e` has no effect.
    pub(crate) errexit_suspended: u32,
}

/// The lifecycle state of a shell: when it started, whether it is a subshell, and whether it has
/// exited.
#[derive(Clone, Copy)]
pub(crate) struct Lifecycle {
    /// The instant from which `SECONDS` is counted.
    pub(crate) started: Instant,
    /// If true, this is not the shell of a session, but a stage, a subshell, a job or a nested
    /// shell. It exits if a command writes to a pipe without a reader.
    pub(crate) subshell: bool,
    /// If true, `exit` ended the shell.
    pub(crate) exited: bool,
}
