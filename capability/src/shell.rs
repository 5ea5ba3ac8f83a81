//! `shell`: lines of a shell whose commands are programs in the sandbox. No process of the host stands behind it.
//!
//! A line may touch any of the run's files, and which ones is known only as it goes: the shell gets the files as the run's guard lets
//! them be seen, so that every rule on paths is held to at each access.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use wattle_rt::{Account, Code, Config, Failure, Run, Unadmitted, capability};

use crate::files::Files;
use crate::{PortFuture, fs};

capability! {
    /// A pipe shell over the run's files; its commands run in the sandbox.
    pub const SHELL: "shell" 1;

    /// Runs a line, with stdin where given, and gives its standard output; ETRFM where its status is not 0
    #[example = r#"(ret (shell.run? "tr a-z A-Z" "hello"))"# => "HELLO"]
    #[prompt(name)]
    #[effect(changes)]
    async run(line: script, stdin: opt_str) -> ptr: bytes ! ETRFM EACCESS ENOMEM ETIME = run_line;

    /// Runs a line, with stdin where given, and gives JSON {stdout, stderr, status}, whatever the status
    #[example = r#"(ret (shell.result? "cat nothing.txt"))"# => r#"{"stdout":"","stderr":"cat: nothing.txt: no such file\n","status":1}"#]
    #[prompt(name)]
    #[effect(changes)]
    async result(line: script, stdin: opt_str) -> ptr: str ! EACCESS ENOMEM ETIME = result;
}

/// The port to a shell, implemented by whoever wires a run.
pub trait Shell: Send + Sync {
    /// Runs a script on those files and no others, with that standard input, until the deadline, on the account of a run. What a script
    /// does wrong, in its grammar too, is its standard error and its status; a failure is what keeps the shell itself from working.
    fn run(
        &self,
        account: &Account,
        files: Arc<Files>,
        script: String,
        stdin: Vec<u8>,
        deadline: Instant,
    ) -> PortFuture<'_, Captured>;
}

/// What a script left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// Its status; 0 is success.
    pub status: u8,
}

/// Grants `shell` on that shell.
pub struct Sh(pub Arc<dyn Shell>);

impl Config for Sh {
    const CAPABILITY: &'static str = "shell";
}

async fn captured(run: &Run, line: Unadmitted<String>, stdin: Option<String>) -> Result<Captured, Failure> {
    let (line, gate) = line.open(run);
    let shell = run.config::<Sh>()?;
    let files = fs::confined(run, gate)?;
    shell.0.run(run.account(), files, line, stdin.unwrap_or_default().into_bytes(), run.deadline()).await
}

async fn run_line(run: &mut Run, line: Unadmitted<String>, stdin: Option<String>) -> Result<Vec<u8>, Failure> {
    let Captured { stdout, stderr, status } = captured(run, line, stdin).await?;
    if status == 0 {
        return Ok(stdout);
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(Failure::new(
        Code::ETRFM,
        match excerpt(said.trim()) {
            "" => format!("the line ended with status {status}"),
            said => format!("the line ended with status {status}: {said}"),
        },
    ))
}

async fn result(run: &mut Run, line: Unadmitted<String>, stdin: Option<String>) -> Result<String, Failure> {
    let Captured { stdout, stderr, status } = captured(run, line, stdin).await?;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    Ok(json!({"stdout": stdout, "stderr": stderr, "status": status}).to_string())
}

/// The end of what a line said, where its reason stands.
fn excerpt(said: &str) -> &str {
    const BYTES: usize = 1_000;
    said.get(said.ceil_char_boundary(said.len().saturating_sub(BYTES))..).unwrap_or_default()
}
