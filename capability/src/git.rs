//! `git`: everything in the workdir, committed and pushed, in trusted runs.
//!
//! A program supplies the message and nothing else: the repository, the author, the remote and the branch are the operator's, and the
//! host carries out one fixed sequence. It works through a [`Repository`]; the one that is real is the [`Broker`], the only place that
//! starts a process.

mod broker;
mod process;
mod remote;
mod repository;

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::PortFuture;

pub use broker::{Author, Broker, PushTo, find_git};
pub use remote::{Branch, Remote, RemoteError, RemoteFiles};

capability! {
    /// The workdir's repository, in trusted runs.
    pub const GIT: "git" 1;

    /// Commits everything in the workdir under that message, pushes it to the operator's remote, and tells what became of it
    #[example = r#"(ret (git.commit_push? "add the notes"))"# => "committed and pushed: add the notes"]
    #[prompt(name)]
    #[effect(once)]
    #[touches(reads "/", writes ".git", remote)]
    async commit_push(message: str) -> ptr: str ! EACCESS EBOUND EEXIST EREMOTE ETIME ETRFM = commit_push;
}

/// The longest commit message, in bytes.
const MESSAGE: usize = 8 << 10;

/// The port to the workdir's repository.
///
/// A repository that may not be used, or none at all, is told as `EACCESS`, a remote that has other commits as `EEXIST`, a remote that
/// fails as `EREMOTE`, one that is late as `ETIME`.
pub trait Repository: Send + Sync {
    /// Commits everything and pushes it; gives in a sentence what became of it. Nothing to commit is no failure.
    fn commit_push(&self, message: String) -> PortFuture<'_, String>;
}

/// Grants `git` on a repository.
pub struct Git(pub Arc<dyn Repository>);

impl Config for Git {
    const CAPABILITY: &'static str = "git";
}

/// Stands where the operator named no remote, or there is no `git`: says what is missing.
#[derive(Clone, Debug)]
pub struct NoRepository(pub String);

impl NoRepository {
    /// No remote is configured.
    #[must_use]
    pub fn no_remote() -> Self {
        NoRepository(
            "no remote is configured; the operator sets `git.remote` in the user file, or `WATTLE_GIT_REMOTE`"
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

async fn commit_push(run: &mut Run, message: String) -> Result<String, Failure> {
    let git = run.config::<Git>()?;
    git.0.commit_push(checked(&message)?).await
}

/// The message as it may stand in a commit.
fn checked(message: &str) -> Result<String, Failure> {
    let message = message.trim();
    let wrong = |what: String| Err(Failure::new(Code::EBOUND, what));
    if message.is_empty() {
        return wrong("the commit message is empty; say in a line what changed".to_owned());
    }
    if message.len() > MESSAGE {
        let length = message.len();
        return wrong(format!("the commit message has {length} bytes, more than {MESSAGE}; write a shorter one"));
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
    fn a_message_is_plain_text_within_a_bound() {
        assert_eq!(checked(" add a\n\n- b\n").as_deref(), Ok("add a\n\n- b"));
        let long = "x".repeat(MESSAGE + 1);
        for (message, words) in [
            ("", "is empty"),
            (" \n", "is empty"),
            (long.as_str(), "8193 bytes"),
            ("a\0b", "control"),
            ("a\x1b[2J", "control"),
        ] {
            let why = checked(message).unwrap_err().to_string();
            assert!(why.contains(words), "{message:?}: {why}");
        }
    }
}
