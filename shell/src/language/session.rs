//! The shell as the host sees it: sessions that keep their variables, and single lines whose output is kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::files::Files;
use wattle_rt::Account;

use super::interpreter::Interpreter;
use super::parse;
use super::run::Run;
use super::{builtin_table, builtins};
use crate::bounds::StageBounds;
use crate::bounds::{Bounds, amount};
use crate::command::{Commands, Status};
use crate::stream::{Captured, Stream};

/// The shell: commands and bounds, of which sessions are made.
///
/// ```
/// use std::sync::Arc;
/// use wattle_capability::files::{Files, OVERLAY_LIMIT};
/// use wattle_shell::{Bounds, NoCommands, Shell};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// let shell = Shell::new(Arc::new(NoCommands), Bounds::default());
/// let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
/// let output = shell.capture(&files, "for n in 1 2 3; do echo $((n * n)); done > squares; read first < squares; echo \"$first\"", "", None).await;
/// assert_eq!(output.stdout, b"1\n");
/// assert_eq!(files.read("squares").unwrap(), "1\n4\n9\n");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Shell {
    commands: Arc<dyn Commands>,
    bounds: Bounds,
}

/// The three streams of a line.
#[derive(Clone, Debug)]
pub struct Stdio {
    /// Descriptor 0.
    pub stdin: Stream,
    /// Descriptor 1.
    pub stdout: Stream,
    /// Descriptor 2.
    pub stderr: Stream,
}

/// What a line gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// What it wrote to standard output; of much, the beginning and the end, with a line between that says how much is left out.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, likewise.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub status: Status,
    /// Whether something was left out.
    pub cut: bool,
}

/// A shell that keeps its variables, functions, options and folder from line to line.
pub struct Session {
    interpreter: Interpreter,
    /// How it was before the line that is being run, or that was dropped before its end.
    before: Option<Box<Interpreter>>,
    exited: bool,
}

impl Shell {
    /// Makes a shell of its commands and bounds.
    #[must_use]
    pub fn new(commands: Arc<dyn Commands>, bounds: Bounds) -> Shell {
        Shell { commands, bounds }
    }

    /// Makes the same shell with commands that are charged to an account.
    pub(crate) fn charged_to(&self, account: Account) -> Shell {
        let stage = StageBounds { account: Some(account), ..self.bounds.stage.clone() };
        Shell { commands: Arc::clone(&self.commands), bounds: Bounds { stage, ..self.bounds.clone() } }
    }

    /// Begins a session over the files of a run.
    #[must_use]
    pub fn session(&self, files: Arc<Files>) -> Session {
        let run = Run::new(Arc::clone(&self.commands), files, self.bounds.clone());
        let mut interpreter = Interpreter::new(Arc::new(run), BTreeMap::new());
        interpreter.set_login_environment();
        Session { interpreter, before: None, exited: false }
    }

    /// Runs a script in a session of its own, and keeps what it writes. Without a deadline the bounds' own counts.
    pub async fn capture(
        &self,
        files: &Arc<Files>,
        script: &str,
        stdin: impl Into<bytes::Bytes>,
        deadline: Option<Duration>,
    ) -> Output {
        let (stdout, out) = Stream::capture_ends(self.bounds.output);
        let (stderr, err) = Stream::capture_ends(self.bounds.output);
        let stdio = Stdio { stdin: Stream::bytes(stdin), stdout, stderr };
        let status = self.session(Arc::clone(files)).run_script(script, stdio, deadline).await;
        let cut = out.overflowed() || err.overflowed();
        Output { stdout: joined(&out), stderr: joined(&err), status, cut }
    }

    /// The names of all builtins and commands, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = builtin_table::names().map(str::to_owned).chain(self.commands.names()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What `help` writes.
    #[must_use]
    pub fn help(&self) -> String {
        builtins::help_text(self.commands.names())
    }
}

impl Session {
    /// Runs a line. A text that is no script is told on standard error and runs nothing; a line that reaches its deadline or another bound is
    /// ended, which is told likewise, and leaves the session as it was before the line. So does a line whose future is dropped.
    pub async fn run(&mut self, line: &str, stdio: Stdio, deadline: Option<Duration>) -> Status {
        self.carry_out(line, stdio, deadline, false).await
    }

    /// Runs a whole script: at its end its `EXIT` trap is run, and its jobs are waited for, as a caller who reads to the end would.
    pub async fn run_script(&mut self, script: &str, stdio: Stdio, deadline: Option<Duration>) -> Status {
        self.carry_out(script, stdio, deadline, true).await
    }

    async fn carry_out(&mut self, text: &str, stdio: Stdio, deadline: Option<Duration>, whole: bool) -> Status {
        if let Some(before) = self.before.take() {
            self.interpreter = *before;
        }
        let run = Arc::clone(&self.interpreter.run);
        let stderr = stdio.stderr.clone();
        let tell = async |words: String| {
            // Whoever closed the place for messages does not want them.
            let _ = stderr.write(format!("{words}\n").as_bytes()).await;
        };
        if text.len() > run.bounds.script {
            tell(format!("the script is longer than {}", amount(run.bounds.script))).await;
            return self.ended(2);
        }
        let list = match parse::parse(text, 1) {
            Ok(list) => list,
            Err(error) => {
                tell(error.to_string()).await;
                return self.ended(2);
            }
        };
        run.begin();
        self.before = Some(Box::new(self.interpreter.clone()));
        self.interpreter.descriptors.open = BTreeMap::from([(0, stdio.stdin), (1, stdio.stdout), (2, stdio.stderr)]);
        let limit = deadline.unwrap_or(run.bounds.deadline);
        let interpreter = &mut self.interpreter;
        let line = async {
            // Whatever jumped, the status is set.
            let _ = interpreter.list(&list).await;
            if whole || interpreter.lifecycle.exited {
                interpreter.finish().await;
            }
            interpreter.descriptors.open.clear();
            if whole {
                for job in run.orphans() {
                    job.finish().await;
                }
            }
        };
        let reason = tokio::select! {
            biased;
            words = run.wait_for_end() => Some((words, 125)),
            ran = tokio::time::timeout(limit, line) => ran.err().map(|_| (format!("the line took longer than its {} s", limit.as_secs_f64()), 124)),
        };
        drop(run.orphans());
        let before = self.before.take();
        let reason = reason.or_else(|| run.reason().map(|words| (words, 125)));
        let Some((words, status)) = reason else {
            self.exited = self.interpreter.lifecycle.exited;
            self.interpreter.descriptors.substitutions.clear();
            self.interpreter.descriptors.persistent.clear();
            return Status(self.interpreter.last.status);
        };
        if let Some(before) = before {
            self.interpreter = *before;
        }
        tell(format!("ended: {words}")).await;
        self.ended(status)
    }

    fn ended(&mut self, status: u8) -> Status {
        self.interpreter.last.status = status;
        Status(status)
    }

    /// The interpreter as it was after the last line that came to its end.
    fn settled(&self) -> &Interpreter {
        self.before.as_deref().unwrap_or(&self.interpreter)
    }

    /// Whether a line has ended the session, as `exit` does.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Sets the words of `$0`, and of `$1`, `$2`, ….
    pub fn set_arguments(&mut self, name: impl Into<String>, arguments: impl IntoIterator<Item = String>) {
        self.interpreter.parameters.name = name.into();
        self.interpreter.parameters.arguments = arguments.into_iter().collect();
    }

    /// A variable's text, such as that of `PS1`.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.settled().variable(name).map(|text| text.to_string())
    }

    /// The working folder.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.settled().folders.current
    }

    /// Whether a text breaks off in the middle of something, so that a further line could complete it.
    #[must_use]
    pub fn is_incomplete(text: &str) -> bool {
        parse::parse(text, 1).is_err_and(|error| error.incomplete)
    }
}

/// What was kept of an output, as one text.
fn joined(captured: &Captured) -> Vec<u8> {
    let (mut head, between, tail) = captured.ends();
    if between > 0 {
        head.extend_from_slice(format!("\n… {between} bytes are left out …\n").as_bytes());
    }
    head.extend_from_slice(&tail);
    head
}
