//! The shell's interface to the host: sessions, and scripts whose output is captured.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::files::Files;
use wattle_rt::Account;

use super::interpreter::Interpreter;
use super::parse::SyntaxError;
use super::run::Run;
use super::task::Task;
use super::{builtins, parse};
use crate::bounds::StageBounds;
use crate::bounds::{Bounds, amount};
use crate::command::{Commands, Status};
use crate::ledger::Ledger;
use crate::stream::{CapturedBytes, Stream};

/// A shell: a set of commands, and the limits for scripts. It creates sessions.
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
/// let line = "for n in 1 2 3; do echo $((n * n)); done > squares; \
///             read first < squares; echo \"$first\"";
/// let output = shell.capture(&files, line, "", None).await;
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

/// The standard streams of a script.
#[derive(Clone, Debug)]
pub struct Stdio {
    /// Descriptor 0.
    pub stdin: Stream,
    /// Descriptor 1.
    pub stdout: Stream,
    /// Descriptor 2.
    pub stderr: Stream,
}

/// Result of a captured script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Standard output. A long output is truncated to its start and end, with a line between them
    /// that states the number of omitted bytes.
    pub stdout: Vec<u8>,
    /// Standard error, truncated in the same way.
    pub stderr: Vec<u8>,
    /// Exit status.
    pub status: Status,
    /// If true, `stdout` or `stderr` is truncated.
    pub truncated: bool,
}

/// A shell session. It keeps variables, functions, options and the working directory between lines.
pub struct Session {
    interpreter: Interpreter,
    /// State before the current line. It is restored if the line exceeds a limit or its future is
    /// dropped.
    saved: Option<Box<Interpreter>>,
    exited: bool,
}

impl Shell {
    /// Creates a shell.
    #[must_use]
    pub fn new(commands: Arc<dyn Commands>, bounds: Bounds) -> Shell {
        Shell { commands, bounds }
    }

    /// Returns a copy of this shell that charges its own memory, and the resources of its commands,
    /// to an account.
    pub(crate) fn charged_to(&self, account: Account) -> Shell {
        let stage = StageBounds { account: Some(account), ..self.bounds.stage.clone() };
        Shell {
            commands: Arc::clone(&self.commands),
            bounds: Bounds { stage, ..self.bounds.clone() },
        }
    }

    /// Starts a session on the files of a run.
    #[must_use]
    pub fn session(&self, files: Arc<Files>) -> Session {
        let run = Run::new(Arc::clone(&self.commands), &files, self.bounds.clone());
        let mut interpreter = Interpreter::new(Arc::new(run), BTreeMap::new());
        interpreter.set_login_environment();
        Session { interpreter, saved: None, exited: false }
    }

    /// Runs a script in its own session and captures its output. The time limit is `deadline` or,
    /// if that is `None`, the limit in the bounds.
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
        let truncated = out.overflowed() || err.overflowed();
        Output { stdout: joined(&out), stderr: joined(&err), status, truncated }
    }

    /// Returns the names of all builtins and commands, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            builtins::names().map(str::to_owned).chain(self.commands.names()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the output of `help`.
    #[must_use]
    pub fn help(&self) -> String {
        builtins::help_text(self.commands.names())
    }
}

impl Session {
    /// Runs a line. If the line has a syntax error, reports it on standard error and runs nothing.
    /// If the line exceeds its deadline or another limit of the script, reports the limit, ends the
    /// line, and restores the state that the session had before the line. Dropping the future also
    /// restores this state.
    pub async fn run(&mut self, line: &str, stdio: Stdio, deadline: Option<Duration>) -> Status {
        self.run_text(line, stdio, deadline, false).await
    }

    /// Runs a whole script. At the end of the script, runs its `EXIT` trap and waits for its jobs.
    pub async fn run_script(
        &mut self,
        script: &str,
        stdio: Stdio,
        deadline: Option<Duration>,
    ) -> Status {
        self.run_text(script, stdio, deadline, true).await
    }

    async fn run_text(
        &mut self,
        text: &str,
        stdio: Stdio,
        deadline: Option<Duration>,
        whole: bool,
    ) -> Status {
        if let Some(saved) = self.saved.take() {
            self.interpreter = *saved;
        }
        let run = Arc::clone(&self.interpreter.run);
        let stderr = stdio.stderr.clone();
        let report = async |message: String| {
            // If standard error has no reader, the message is lost.
            let _ = stderr.write(format!("{message}\n").as_bytes()).await;
        };
        if text.len() > run.bounds.script {
            report(format!("the script is longer than {}", amount(run.bounds.script))).await;
            return self.end_with(2);
        }
        let running = run.running();
        self.interpreter.execution.script = run.begin();
        self.saved = Some(Box::new(self.interpreter.clone()));
        self.interpreter.descriptors.open =
            BTreeMap::from([(0, stdio.stdin), (1, stdio.stdout), (2, stdio.stderr)]);
        let limit = deadline.unwrap_or(run.bounds.deadline);
        let placeholder = self.interpreter.placeholder();
        let interpreter = std::mem::replace(&mut self.interpreter, placeholder);
        let mut task = Task::start(run_line(interpreter, text.to_owned(), whole));
        let result = tokio::time::timeout(limit, poll_fn(|context| task.poll_end(context)));
        let failure = tokio::select! {
            biased;
            reason = run.wait_for_end() => {
                task.cancel().await;
                Some((format!("ended: {reason}"), 125))
            }
            result = result => match result {
                Ok(Some((interpreter, parsed))) => {
                    self.interpreter = interpreter;
                    if let Err(error) = parsed {
                        self.saved = None;
                        report(error.to_string()).await;
                        return self.end_with(2);
                    }
                    None
                }
                Ok(None) => {
                    Some(("ended: the shell failed: this is a bug in the host".to_owned(), 125))
                }
                Err(_) => {
                    task.cancel().await;
                    let seconds = limit.as_secs_f64();
                    Some((format!("ended: the line took longer than its {seconds} s"), 124))
                }
            },
        };
        drop(run.orphans());
        let saved = self.saved.take();
        let failure =
            failure.or_else(|| run.reason().map(|reason| (format!("ended: {reason}"), 125)));
        let Some((message, status)) = failure else {
            self.exited = self.interpreter.lifecycle.exited;
            self.interpreter.descriptors.substitutions.clear();
            self.interpreter.descriptors.persistent.clear();
            return Status(self.interpreter.last.status);
        };
        if let Some(saved) = saved {
            self.interpreter = *saved;
        }
        run.wait_for_slots(running).await;
        report(message).await;
        self.end_with(status)
    }

    /// Sets `$?` to a status and returns it.
    fn end_with(&mut self, status: u8) -> Status {
        self.interpreter.last.status = status;
        Status(status)
    }

    /// Returns the interpreter's state after the last line that ran to completion.
    fn settled(&self) -> &Interpreter {
        self.saved.as_deref().unwrap_or(&self.interpreter)
    }

    /// Returns true if a line has ended the session with `exit`.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Sets `$0`, and the positional parameters `$1`, `$2`, ….
    pub fn set_arguments(
        &mut self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = String>,
    ) {
        let name: String = name.into();
        self.interpreter.parameters.name = name.into();
        let ledger = Arc::clone(&self.interpreter.run.ledger);
        let arguments = arguments.into_iter().map(|word| ledger.store_unlimited(word));
        self.interpreter.parameters.arguments = Arc::new(arguments.collect());
    }

    /// Returns the value of a variable, such as `PS1`, if it is set.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.settled().variable(name).map(|text| text.to_string())
    }

    /// Returns the working directory.
    #[must_use]
    pub fn folder(&self) -> &str {
        &self.settled().folders.current
    }

    /// Returns true if a script is incomplete and additional lines could complete it.
    #[must_use]
    pub fn is_incomplete(text: &str) -> bool {
        let trees = Ledger::new(Bounds::default().trees, None);
        parse::parse(text, 1, &trees).is_err_and(|error| error.incomplete)
    }
}

/// Parses and runs a line. If the line is a whole script or ends the shell, also runs the `EXIT`
/// trap. After a whole script, waits for the script's jobs. Returns the interpreter, and the syntax
/// error if there is one.
async fn run_line(
    mut interpreter: Interpreter,
    text: String,
    whole: bool,
) -> (Interpreter, Result<(), SyntaxError>) {
    let list = match parse::parse(&text, 1, &interpreter.run.trees) {
        Ok(list) => list,
        Err(error) => {
            interpreter.descriptors.open.clear();
            return (interpreter, Err(error));
        }
    };
    // The list has set the status, even if a jump such as `exit` ended it.
    let _ = interpreter.lines(&list).await;
    if whole || interpreter.lifecycle.exited {
        interpreter.finish().await;
    }
    interpreter.descriptors.open.clear();
    if whole {
        for job in interpreter.run.orphans() {
            job.finish().await;
        }
    }
    (interpreter, Ok(()))
}

/// Returns a captured output as one byte string, with a note in place of dropped bytes.
fn joined(captured: &CapturedBytes) -> Vec<u8> {
    let (mut head, dropped, tail) = captured.ends();
    if dropped > 0 {
        head.extend_from_slice(format!("\n… {dropped} bytes are left out …\n").as_bytes());
    }
    head.extend_from_slice(&tail);
    head
}
