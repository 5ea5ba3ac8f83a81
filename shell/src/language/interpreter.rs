//! The interpreter: the state of one shell, and its access to the run's files and to its standard
//! streams.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use wattle_capability::files::Files;

use super::ast::Command;
use super::jobs::Jobs;
use super::options::Options;
use super::paths;
use super::run::Run;
use super::variables::{AssignError, Variables};
use crate::errno::{Errno, Fault};
use crate::ledger::Text;
use crate::stream::Stream;

/// A shell. A clone is a subshell: its changes do not affect the original.
#[derive(Clone)]
pub(crate) struct Interpreter {
    pub(crate) run: Arc<Run>,
    pub(crate) variables: Variables,
    pub(crate) definitions: Definitions,
    pub(crate) parameters: Parameters,
    pub(crate) options: Options,
    pub(crate) descriptors: Descriptors,
    pub(crate) folders: Folders,
    pub(crate) last: LastCommand,
    pub(crate) jobs: Jobs,
    pub(crate) execution: Execution,
    pub(crate) lifecycle: Lifecycle,
    /// The generator of `RANDOM`. A script can seed it, so it is not shared with other shells.
    pub(crate) random: fastrand::Rng,
}

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
    /// If true, a required variable is not set. The shell exits when that is reported.
    pub(crate) is_missing: bool,
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
    /// If true, this is a copy of another shell: a stage, a subshell, or a job.
    pub(crate) forked: bool,
    /// If true, `exit` ended the shell.
    pub(crate) exited: bool,
}

/// A jump out of the running commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// `break` out of this many loops.
    Break(u32),
    /// `continue` in the enclosing loop with this number. The innermost loop is number 1.
    Continue(u32),
    /// `return` from a function or a sourced script.
    Return,
    /// The end of the current line of the script, because one of its expressions or assignments is
    /// invalid. A line is a list of commands up to a newline outside of them. In a subshell, ends
    /// the subshell. The failure is already reported and its status is set.
    Abandon,
    /// The exit of the shell. Its status is already set.
    Exit,
}

/// Result of running a part of a script: a value, or a jump.
pub(crate) type Flow<T = ()> = Result<T, Jump>;

/// The reason why an operation of the shell stopped: a jump, or a failure.
#[derive(Debug)]
pub(crate) enum Stop {
    Jump(Jump),
    /// A failure that is not reported yet, with the status for the command.
    Failed {
        status: u8,
        message: String,
    },
    /// A failure that is not reported yet, and that abandons the rest of the line. Its status is 1.
    Abandoned(String),
}

/// Result of an operation that may fail.
pub(crate) type Attempt<T = ()> = Result<T, Stop>;

impl From<Jump> for Stop {
    fn from(jump: Jump) -> Stop {
        Stop::Jump(jump)
    }
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Failed { status: 1, message }
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Stop {
        Stop::from(message.to_owned())
    }
}

/// Returns the failure of a command that was called in a wrong way. Its status is 2.
pub(crate) fn usage(message: impl Into<String>) -> Stop {
    Stop::Failed { status: 2, message: message.into() }
}

/// Variables of a new shell.
const VARIABLES: [(&str, &str); 17] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("IFS", " \t\n"),
    ("OPTIND", "1"),
    ("OPTERR", "1"),
    ("PS1", "$ "),
    ("PS2", "> "),
    ("PS4", "+ "),
    ("BASH", "/bin/bash"),
    ("BASH_VERSION", "5.2.0(1)-wattle"),
    ("HOSTNAME", "wattle"),
    ("HOSTTYPE", "wasm32"),
    ("OSTYPE", "wasi"),
    ("MACHTYPE", "wasm32-wasi"),
    ("SHLVL", "1"),
    ("UID", "1000"),
    ("EUID", "1000"),
    ("PPID", "1"),
];

/// Exported variables of a new session.
const LOGIN_ENVIRONMENT: [(&str, &str); 9] = [
    ("HOME", "/"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("SHELL", "/bin/bash"),
    ("USER", "user"),
    ("LOGNAME", "user"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("TMPDIR", "/"),
    ("PWD", "/"),
];

impl Interpreter {
    /// Creates a shell with the given descriptors. Its working directory is the root.
    pub(crate) fn new(run: Arc<Run>, descriptors: BTreeMap<u32, Stream>) -> Interpreter {
        let variables = Variables::new(Arc::clone(&run.ledger));
        let script = run.script();
        let mut interpreter = Interpreter {
            run,
            variables,
            definitions: Definitions::default(),
            parameters: Parameters { name: "bash".into(), ..Parameters::default() },
            options: Options::default(),
            descriptors: Descriptors { open: descriptors, ..Descriptors::default() },
            folders: Folders { current: "/".into(), stack: Vec::new() },
            last: LastCommand::default(),
            jobs: Jobs::default(),
            execution: Execution { line: 1, script, ..Execution::default() },
            lifecycle: Lifecycle {
                started: Instant::now(),
                subshell: false,
                forked: false,
                exited: false,
            },
            random: fastrand::Rng::new(),
        };
        for (name, value) in VARIABLES {
            interpreter.preset(name, value, false);
        }
        interpreter
    }

    /// Sets the environment of a new session. A shell that a command starts inherits the
    /// environment of its caller instead.
    pub(crate) fn set_login_environment(&mut self) {
        for (name, value) in LOGIN_ENVIRONMENT {
            self.preset(name, value, true);
        }
    }

    /// Sets a predefined variable. Does nothing if the session's variables have reached their
    /// limit.
    pub(crate) fn preset(&mut self, name: &str, value: &str, exported: bool) {
        if self.variables.set(name, value).is_ok()
            && let Ok(variable) = self.variables.attributes(name)
        {
            variable.exported = exported;
        }
    }

    /// Returns a copy of this shell to run as a subshell.
    pub(crate) fn fork(&self) -> Interpreter {
        let mut copy = self.clone();
        copy.lifecycle.subshell = true;
        copy.lifecycle.forked = true;
        // As in bash, a subshell does not repeat the numbers of its parent.
        copy.random = fastrand::Rng::new();
        let traps = &mut copy.definitions.traps;
        traps.retain(|name, action| action.is_empty() || !matches!(name.as_str(), "EXIT" | "ERR"));
        copy
    }

    /// Returns an empty shell to use in place of this shell while this shell runs in another task.
    pub(crate) fn placeholder(&self) -> Interpreter {
        Interpreter {
            run: Arc::clone(&self.run),
            variables: Variables::new(Arc::clone(&self.run.ledger)),
            definitions: Definitions::default(),
            parameters: Parameters::default(),
            options: self.options,
            descriptors: Descriptors::default(),
            folders: Folders::default(),
            last: LastCommand { word: None, ..self.last },
            jobs: Jobs::default(),
            execution: Execution { calls: Vec::new(), ..self.execution },
            lifecycle: self.lifecycle,
            random: fastrand::Rng::new(),
        }
    }

    /// Ends the whole script because it exceeds a limit. Returns the jump that exits this shell.
    pub(crate) fn exceed(&mut self, message: String) -> Jump {
        self.run.end(self.execution.script, message);
        self.last.status = 125;
        Jump::Exit
    }

    /// Stores words as positional parameters. Their bytes count toward the limit on variables. Ends
    /// the script if the limit is exceeded.
    pub(crate) fn positional(
        &mut self,
        words: impl IntoIterator<Item = String>,
    ) -> Flow<Arc<Vec<Text>>> {
        words.into_iter().map(|word| self.stored(word)).collect::<Flow<Vec<Text>>>().map(Arc::new)
    }

    /// Stores a string in the state of the shell. Ends the script if there is no room for it.
    pub(crate) fn stored(&mut self, text: String) -> Flow<Text> {
        let stored = self.run.ledger.store(text);
        stored.map_err(|full| self.exceed(AssignError::Full(full).to_string()))
    }

    /// Enters a nesting level. Ends the script if the nesting is too deep.
    pub(crate) fn enter_level(&mut self) -> Flow {
        self.execution.depth += 1;
        let max = self.run.bounds.depth;
        if self.execution.depth > max {
            return Err(self.exceed(format!(
                "functions, subshells and substitutions are nested deeper than {max} levels: does \
                 a function call itself without end?"
            )));
        }
        // The copies of the variables in a subshell may have exceeded the limit.
        if !self.run.ledger.has_room(0) {
            return Err(self.exceed(AssignError::Full(self.run.ledger.full(0)).to_string()));
        }
        Ok(())
    }

    /// Counts a command, a loop iteration or an expansion, and yields to other tasks from time to
    /// time, so that a loop of builtins can be cancelled. Returns [`Jump::Exit`] if the script has
    /// been terminated.
    pub(crate) async fn checkpoint(&mut self) -> Flow {
        if self.run.count_step() {
            tokio::task::yield_now().await;
        }
        if self.run.is_ended() { Err(Jump::Exit) } else { Ok(()) }
    }

    /// Runs an operation on the run's files. Unless the files are in memory, the operation runs on
    /// a thread where blocking is allowed.
    pub(crate) async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Files>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let files = Arc::clone(&self.run.files);
        if files.is_memory() {
            return work(&files);
        }
        tokio::task::spawn_blocking(move || work(&files)).await.unwrap_or(Err(Errno::INTR.into()))
    }

    /// Converts a path to an absolute path in the run's files.
    pub(crate) fn path(&self, path: &str) -> String {
        paths::absolute(&self.folders.current, path)
    }

    /// Checks that an absolute path, as the user wrote it, does not lead outside the run's files. A
    /// relative path is checked only when it is used.
    pub(crate) async fn check_inside(&self, path: &str, write: bool) -> Result<(), Fault> {
        if !path.starts_with('/') {
            return Ok(());
        }
        let path = path.to_owned();
        self.on_files(move |files| Ok(files.check_inside(&path, write)?)).await
    }

    /// Writes to standard output and returns the status. If the pipe has no reader, ends the shell
    /// as SIGPIPE would.
    pub(crate) async fn print(&mut self, text: impl AsRef<[u8]>) -> Flow<u8> {
        self.write(1, text.as_ref()).await
    }

    async fn write(&mut self, fd: u32, text: &[u8]) -> Flow<u8> {
        let written = match self.descriptors.open.get(&fd).cloned() {
            Some(stream) => stream.write(text).await,
            None => Err(Errno::BADF),
        };
        match written {
            Ok(()) => Ok(0),
            Err(Errno::PIPE) => {
                self.last.status = 141;
                Err(Jump::Exit)
            }
            Err(errno) if fd == 1 => {
                self.report(&format!("write error: {errno}")).await;
                Ok(1)
            }
            Err(_) => Ok(1),
        }
    }

    /// Writes an error message to standard error. The message starts with the current line number,
    /// unless the current line is the first.
    pub(crate) async fn report(&self, message: &str) {
        let text = if self.execution.line > 1 {
            format!("line {}: {message}\n", self.execution.line)
        } else {
            format!("{message}\n")
        };
        self.write_stderr(&text).await;
    }

    /// Reports a failure, and sets `$?` to its status and returns it.
    pub(crate) async fn report_failure(&mut self, stop: Stop) -> Flow<u8> {
        match stop {
            Stop::Jump(jump) => Err(jump),
            Stop::Failed { status, message } => self.failed(status, &message).await,
            Stop::Abandoned(message) => Err(self.abandon(&message).await),
        }
    }

    /// Reports an error, and sets `$?` to the status and returns it. If a required variable is not
    /// set, exits the shell with the same status as `bash -c`.
    pub(crate) async fn failed(&mut self, status: u8, message: &str) -> Flow<u8> {
        self.report(message).await;
        self.last.status = status;
        if !std::mem::take(&mut self.execution.is_missing) {
            return Ok(status);
        }
        self.last.status = if self.options.errexit || self.lifecycle.forked { 1 } else { 127 };
        Err(Jump::Exit)
    }

    /// Returns the value of an operation. If it failed, reports the failure and abandons the rest
    /// of the line, as bash does.
    pub(crate) async fn or_abandon<T>(&mut self, attempt: Result<T, impl Into<Stop>>) -> Flow<T> {
        match attempt.map_err(Into::into) {
            Ok(value) => Ok(value),
            Err(Stop::Jump(jump)) => Err(jump),
            Err(Stop::Failed { message, .. } | Stop::Abandoned(message)) => {
                Err(self.abandon(&message).await)
            }
        }
    }

    /// Reports an error. Returns the jump that abandons the rest of the line, with status 1.
    pub(crate) async fn abandon(&mut self, message: &str) -> Jump {
        self.failed(1, message).await.err().unwrap_or(Jump::Abandon)
    }

    /// Reports an error. Returns the jump that exits the shell, with status 1.
    pub(crate) async fn fail(&mut self, message: &str) -> Jump {
        self.report(message).await;
        self.last.status = 1;
        Jump::Exit
    }

    /// Writes a string to standard error. Drops it if descriptor 2 is closed or has no reader.
    pub(crate) async fn write_stderr(&self, text: &str) {
        if let Some(stream) = self.descriptors.open.get(&2).cloned() {
            // If descriptor 2 has no reader, the message is lost.
            let _ = stream.write(text.as_bytes()).await;
        }
    }
}
