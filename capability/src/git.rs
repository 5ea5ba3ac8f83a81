//! `git`: commits and pushes the whole workdir, in trusted runs.
//!
//! A program supplies only the message. The operator chooses the repository, the author, the remote
//! and the branch, and the host runs one fixed sequence of `git` commands through a [`Repository`].
//! The production implementation is the [`Broker`]. It is the only code outside the command-line
//! crate that starts a process.

mod broker;
mod process;
mod remote;
mod repository;

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, Service, capability};

use crate::PortFuture;
use crate::egress::Passage;

pub use broker::{Author, Broker, PushTo, find_git};
pub use remote::{Branch, Remote, RemoteError, RemoteFiles};

/// The remote of the workdir's repository.
pub const REMOTE: Service = Service {
    name: "remote",
    label: "remote",
    verb: "push to the remote",
    capability: "git",
    is_class: false,
    depends_on: &["http"],
    leaves_machine: true,
    kept_in: None,
};

capability! {
    /// The workdir's repository, in trusted runs.
    pub const GIT: "git" 1 for "fs";

    /// Commits everything in the workdir with the message, pushes it to the operator's remote, and
    /// returns the outcome
    #[example = r#"(ret (git.commit_push "add the notes"))"# => "committed and pushed: add the notes"]
    #[prompt(name)]
    #[effect(once)]
    #[touches(reads "/", writes ".git", REMOTE)]
    async commit_push(message: str) with Git -> ptr: str ! EACCESS EBOUND EEXIST EREMOTE ETIME ETRFM = commit_push;
}

/// Maximum length of a commit message, in bytes.
const MAX_MESSAGE: usize = 8 << 10;

/// The port to the workdir's repository.
///
/// A failure has the code `EACCESS` if the repository is missing or not allowed, `EEXIST` if the
/// remote has commits that the workdir lacks, `EREMOTE` if the remote fails, and `ETIME` if the
/// call takes too long.
pub trait Repository: Send + Sync {
    /// Commits all changes and pushes them. Returns a sentence that describes the outcome. Succeeds
    /// even if there is nothing to commit.
    fn commit_push(&self, message: String) -> PortFuture<'_, String>;
}

/// The `git` grant: the repository for commits and pushes.
pub struct Git(pub Arc<dyn Repository>);

impl Config for Git {
    const CAPABILITIES: &'static [&'static str] = &["git"];
}

/// A [`Repository`] whose calls always fail, for example because the operator configured no remote
/// or `git` is not installed. The string is the reason.
#[derive(Clone, Debug)]
pub struct NoRepository(pub String);

impl NoRepository {
    /// Returns the repository to use if the operator configured no remote.
    #[must_use]
    pub fn no_remote() -> Self {
        NoRepository(
            "no remote is configured; the operator sets `git.remote` in the user file, or \
             `WATTLE_GIT_REMOTE`"
                .to_owned(),
        )
    }
}

impl Repository for NoRepository {
    fn commit_push(&self, _: String) -> PortFuture<'_, String> {
        let failure = Failure::new(Code::EACCESS, self.0.clone());
        Box::pin(async { Err(failure) })
    }
}

async fn commit_push(git: Arc<Git>, run: &mut Run, message: String) -> Result<String, Failure> {
    let message = validate(&message)?;
    Passage::of(run, GIT.name).check_text("the commit message", message.as_bytes()).await?;
    git.0.commit_push(message).await
}

/// Validates and trims a commit message.
fn validate(message: &str) -> Result<String, Failure> {
    let message = message.trim();
    let wrong = |what: String| Err(Failure::new(Code::EBOUND, what));
    if message.is_empty() {
        return wrong("the commit message is empty; describe the change in one line".to_owned());
    }
    if message.len() > MAX_MESSAGE {
        let length = message.len();
        return wrong(format!(
            "the commit message has {length} bytes, more than {MAX_MESSAGE}; write a shorter one"
        ));
    }
    if message.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return wrong("the commit message has a control character; write plain text".to_owned());
    }
    Ok(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_plain_text_of_limited_length() {
        assert_eq!(validate(" add a\n\n- b\n").as_deref(), Ok("add a\n\n- b"));
        let long = "x".repeat(MAX_MESSAGE + 1);
        for (message, words) in [
            ("", "is empty"),
            (" \n", "is empty"),
            (long.as_str(), "8193 bytes"),
            ("a\0b", "control"),
            ("a\x1b[2J", "control"),
        ] {
            let why = validate(message).unwrap_err().to_string();
            assert!(why.contains(words), "{message:?}: {why}");
        }
    }
}
