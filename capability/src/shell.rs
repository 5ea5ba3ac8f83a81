//! `shell`: runs command lines in a shell whose commands are sandboxed programs. The shell starts
//! no host processes.
//!
//! A line may access any of the run's files, and the files are not known in advance. Therefore, the
//! shell receives a view of the files that asks the run's guard at each access.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use wattle_rt::{Account, Code, Config, Failure, Run, Unadmitted, capability};

use crate::PortFuture;
use crate::files::Files;
use crate::fs::Fs;

capability! {
    /// A shell over the run's files; its commands run in the sandbox.
    pub const SHELL: "shell" 1 for "fs";

    /// Runs a command line, with optional stdin, and returns its stdout; ETRFM if its status is not
    /// 0
    #[example = r#"(ret (shell.run "tr a-z A-Z" "hello"))"# => "HELLO"]
    #[prompt(name)]
    #[effect(changes)]
    async run(line: script, stdin: opt_str) with Sh, Fs -> ptr: bytes ! ETRFM EACCESS ENOMEM ETIME = run_line;

    /// Runs a command line, with optional stdin, and returns JSON {stdout, stderr, status},
    /// whatever the status
    #[example = r#"(ret (shell.result "cat nothing.txt"))"# => r#"{"stdout":"","stderr":"cat: nothing.txt: no such file\n","status":1}"#]
    #[prompt(name)]
    #[effect(changes)]
    async result(line: script, stdin: opt_str) with Sh, Fs -> ptr: str ! EACCESS ENOMEM ETIME = result;
}

/// The port to a shell.
pub trait Shell: Send + Sync {
    /// Runs a script, which is stopped at the deadline. The script can access only `files`, and its
    /// resource use is charged to `account`. Errors in the script, including syntax errors, are
    /// reported through its standard error and its exit status. The call fails only if the shell
    /// itself fails.
    fn run(
        &self,
        account: &Account,
        files: Arc<Files>,
        script: String,
        stdin: Vec<u8>,
        deadline: Instant,
    ) -> PortFuture<'_, ShellOutput>;
}

/// The output and the exit status of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellOutput {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error.
    pub stderr: Vec<u8>,
    /// The exit status. 0 means success.
    pub status: u8,
}

/// The `shell` grant: a shell.
pub struct Sh(pub Arc<dyn Shell>);

impl Config for Sh {
    const CAPABILITIES: &'static [&'static str] = &["shell"];
}

async fn captured(
    shell: &Sh,
    fs: &Fs,
    run: &Run,
    line: Unadmitted<String>,
    stdin: Option<String>,
) -> Result<ShellOutput, Failure> {
    let (line, gate) = line.open(run);
    let files = fs.confined(gate);
    shell
        .0
        .run(run.account(), files, line, stdin.unwrap_or_default().into_bytes(), run.deadline())
        .await
}

async fn run_line(
    shell: Arc<Sh>,
    fs: Arc<Fs>,
    run: &mut Run,
    line: Unadmitted<String>,
    stdin: Option<String>,
) -> Result<Vec<u8>, Failure> {
    let ShellOutput { stdout, stderr, status } = captured(&shell, &fs, run, line, stdin).await?;
    if status == 0 {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&stderr);
    Err(Failure::new(
        Code::ETRFM,
        match tail(stderr.trim()) {
            "" => format!("the line ended with status {status}"),
            stderr => format!("the line ended with status {status}: {stderr}"),
        },
    ))
}

async fn result(
    shell: Arc<Sh>,
    fs: Arc<Fs>,
    run: &mut Run,
    line: Unadmitted<String>,
    stdin: Option<String>,
) -> Result<String, Failure> {
    let ShellOutput { stdout, stderr, status } = captured(&shell, &fs, run, line, stdin).await?;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    Ok(json!({"stdout": stdout, "stderr": stderr, "status": status}).to_string())
}

/// Returns the end of stderr, which usually contains the reason for a failure.
fn tail(stderr: &str) -> &str {
    const MAX_BYTES: usize = 1_000;
    stderr
        .get(stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_BYTES))..)
        .unwrap_or_default()
}
