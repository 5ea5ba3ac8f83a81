//! The interpreter: the state of one shell.

mod assign;
mod flow;
mod io;
mod state;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub(crate) use flow::{Flow, Jump};

use super::jobs::Jobs;
use super::options::Options;
use super::run::Run;
use super::variables::{AssignError, Variables};
use crate::ledger::Text;
use crate::stream::Stream;
use state::{Definitions, Descriptors, Execution, Folders, LastCommand, Lifecycle, Parameters};

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
        let (variables, script) = (Variables::new(Arc::clone(&run.ledger)), run.script());
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
            lifecycle: Lifecycle { started: Instant::now(), subshell: false, exited: false },
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
}
