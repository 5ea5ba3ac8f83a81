//! One call of `git`: a clean environment, no shell, bounded output, and an end.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// The most bytes that are kept of each of the two outputs.
const OUTPUT: u64 = 64 << 10;

/// The folders that `git` finds its own programs in.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a call needs besides its arguments.
pub(super) struct Call<'a> {
    /// The binary, by its absolute path.
    pub(super) git: &'a Path,
    /// The workdir, where `.git` is.
    pub(super) workdir: &'a Path,
    /// An empty folder that stands for the user's own.
    pub(super) home: &'a Path,
    /// The arguments.
    pub(super) args: Vec<String>,
    /// Variables besides the fixed ones.
    pub(super) variables: Vec<(String, String)>,
    /// What it reads; it writes no further once it has that.
    pub(super) input: Option<Vec<u8>>,
    /// When it is ended.
    pub(super) deadline: Instant,
}

/// What a call came to.
#[derive(Debug)]
pub(super) struct Done {
    /// What it left with; `None` where a signal ended it.
    pub(super) code: Option<i32>,
    /// The beginning of its output.
    pub(super) out: String,
    /// The beginning of what it said besides.
    pub(super) err: String,
}

/// Why there is no [`Done`].
#[derive(Debug)]
pub(super) enum Stopped {
    /// The deadline passed; the process was ended.
    Late,
    /// It could not be started or waited for.
    Failed(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(cause: io::Error) -> Self {
        Stopped::Failed(cause)
    }
}

/// A process that ends when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Of a process that has ended already there is nothing to end; waiting takes its entry from the system's table.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `git` and waits for its end.
pub(super) async fn run(call: Call<'_>) -> Result<Done, Stopped> {
    let mut running = Running(command(&call).spawn()?);
    let child = &mut running.0;
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = call.input;
    let feed = spawn_blocking(move || {
        if let Some((mut stdin, input)) = stdin.zip(input) {
            // A process that does not read all of it says by its own output why.
            let _ = stdin.write_all(&input);
        }
    });
    let out = spawn_blocking(move || out.map_or(Ok(String::new()), beginning));
    let err = spawn_blocking(move || err.map_or(Ok(String::new()), beginning));
    let ended = async { (feed.await, out.await, err.await) };
    let Ok((_, out, err)) = timeout_at(call.deadline, ended).await else { return Err(Stopped::Late) };
    let text = |read: Result<io::Result<String>, tokio::task::JoinError>| read.map_err(io::Error::other)?;
    let (out, err) = (text(out)?, text(err)?);
    // Both outputs are closed: it has ended, or is about to.
    let waited = spawn_blocking(move || running.0.wait());
    match timeout_at(call.deadline, waited).await {
        Ok(status) => Ok(Done { code: status.map_err(io::Error::other)??.code(), out, err }),
        Err(_) => Err(Stopped::Late),
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

/// Reads to the end, and keeps the beginning.
fn beginning(mut from: impl Read) -> io::Result<String> {
    let mut kept = Vec::new();
    from.by_ref().take(OUTPUT).read_to_end(&mut kept)?;
    io::copy(&mut from, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}
