//! A call to `git` with a clean environment, no shell, limited output and a deadline.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// Maximum size of the standard output, and of the part of the standard error that is kept, in
/// bytes.
const MAX_OUTPUT: u64 = 64 << 10;

/// The `PATH` of the process: the folders where `git` finds its own programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The parameters of a call to `git`.
pub(super) struct Call<'a> {
    /// The absolute path of the binary.
    pub(super) git: &'a Path,
    /// The workdir, which contains `.git`.
    pub(super) workdir: &'a Path,
    /// An empty folder that replaces the user's home folder.
    pub(super) home: &'a Path,
    /// The command-line arguments.
    pub(super) args: Vec<String>,
    /// Environment variables in addition to the fixed ones.
    pub(super) variables: Vec<(String, String)>,
    /// The input for the process's stdin.
    pub(super) input: Option<Vec<u8>>,
    /// The time at which the process is killed.
    pub(super) deadline: Instant,
}

/// The exit code and the output of a `git` process.
#[derive(Debug)]
pub(super) struct ProcessOutput {
    /// The exit code, or `None` if a signal ended the process.
    pub(super) code: Option<i32>,
    /// The complete standard output.
    pub(super) out: String,
    /// The first [`MAX_OUTPUT`] bytes of the standard error.
    pub(super) err: String,
}

/// The reason why a call has no result.
#[derive(Debug)]
pub(super) enum ProcessError {
    /// The deadline passed, and the process was killed.
    TimedOut,
    /// The standard output was longer than [`MAX_OUTPUT`]. Decisions depend on it, so its beginning
    /// is not used.
    TooLong,
    /// The process could not be started or waited for.
    Failed(io::Error),
}

impl From<io::Error> for ProcessError {
    fn from(cause: io::Error) -> Self {
        ProcessError::Failed(cause)
    }
}

/// A process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Killing fails if the process has already exited. Waiting reaps it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `git` and waits until it exits.
pub(super) async fn run(call: Call<'_>) -> Result<ProcessOutput, ProcessError> {
    let mut running = KillOnDrop(command(&call).spawn()?);
    let child = &mut running.0;
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = call.input;
    let feed = spawn_blocking(move || {
        if let Some((mut stdin, input)) = stdin.zip(input) {
            // If the process does not read all of its input, its output contains the reason.
            let _ = stdin.write_all(&input);
        }
    });
    let out = spawn_blocking(move || beginning(out));
    let err = spawn_blocking(move || beginning(err));
    let ended = async { (feed.await, out.await, err.await) };
    let Ok((_, out, err)) = timeout_at(call.deadline, ended).await else {
        return Err(ProcessError::TimedOut);
    };
    let read = |stream: Result<io::Result<Beginning>, tokio::task::JoinError>| {
        stream.map_err(io::Error::other)?
    };
    let (out, err) = (read(out)?, read(err)?);
    if !out.is_complete {
        return Err(ProcessError::TooLong);
    }
    let (out, err) = (out.text, err.text);
    // Both output streams are closed, so the process has exited or is about to exit.
    let waited = spawn_blocking(move || running.0.wait());
    match timeout_at(call.deadline, waited).await {
        Ok(status) => {
            Ok(ProcessOutput { code: status.map_err(io::Error::other)??.code(), out, err })
        }
        Err(_) => Err(ProcessError::TimedOut),
    }
}

fn command(call: &Call<'_>) -> Command {
    let mut command = Command::new(call.git);
    command
        .args(&call.args)
        .current_dir(call.workdir)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", call.home)
        .env("XDG_CONFIG_HOME", call.home)
        .env("TMPDIR", call.home)
        .env("LC_ALL", "C")
        .env("GIT_DIR", call.workdir.join(".git"))
        .env("GIT_WORK_TREE", call.workdir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_EDITOR", ":")
        .env("GIT_PAGER", "cat")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .envs(call.variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value))))
        .stdin(if call.input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The first [`MAX_OUTPUT`] bytes of a stream.
struct Beginning {
    text: String,
    /// If true, the stream contained no more bytes.
    is_complete: bool,
}

/// Reads a stream to its end and returns its beginning.
fn beginning(from: Option<impl Read>) -> io::Result<Beginning> {
    let mut output = Vec::new();
    let mut rest = 0;
    if let Some(mut from) = from {
        from.by_ref().take(MAX_OUTPUT).read_to_end(&mut output)?;
        rest = io::copy(&mut from, &mut io::sink())?;
    }
    let text = String::from_utf8_lossy(&output).into_owned();
    Ok(Beginning { text, is_complete: rest == 0 })
}
