//! The broker, which performs the only sequence of `git` calls that a trusted run may trigger.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use wattle_rt::{Code, Failure, truncate};

use super::process::{self, Call, ProcessError, ProcessOutput};
use super::remote::{Branch, Remote, RemoteFiles};
use super::repository::{self, State};
use super::{NoRepository, Repository};
use crate::PortFuture;
use crate::files::HostFiles;
use crate::secrets::ApiKey;

/// Maximum total time for a commit and its push.
const TIME: Duration = Duration::from_secs(120);

/// Maximum length of the excerpt from `git`'s output in a failure's message, in characters.
const QUOTED: usize = 400;

/// The settings passed to every `git` call. They override the repository's settings. Each setting
/// prevents `git` from starting a program, prompting a user, or reaching a location that the
/// operator did not choose.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.bare=false",
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "credential.helper=",
    "http.proxy=",
    "http.followRedirects=false",
    "http.sslVerify=true",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=30",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Groups of excerpts from `git`'s error messages, each group with a hint for the operator.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["Permission denied (", "Load key "],
        "; the remote rejects the key; the operator sets another with `git.ssh_key`",
    ),
    (
        &["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"],
        "; the remote's host key is not the known one; the operator verifies it and sets the file \
         that has it with `git.known_hosts`",
    ),
    (
        &[
            "could not read Username",
            "Authentication failed",
            "Permission denied",
            "returned error: 403",
        ],
        "; the operator grants access, for a remote over https with `git.token_env`",
    ),
    (
        &["certificate", "SSL"],
        "; the remote's certificate is not trusted; the operator sets the authority's with \
         `git.ca_file`",
    ),
];

/// The target of a push.
#[derive(Clone, Debug)]
pub struct PushTo {
    /// The remote.
    pub remote: Remote,
    /// The remote branch.
    pub branch: Branch,
    /// The token for a remote over http or https.
    pub token: Option<ApiKey>,
    /// The operator's certificates and keys.
    pub files: RemoteFiles,
}

/// The author of the commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    name: String,
    email: String,
}

impl Author {
    /// Creates an author with the tenant's name. If `email` is missing or empty, uses a placeholder
    /// address that receives no mail.
    #[must_use]
    pub fn of(tenant: &str, email: Option<&str>) -> Author {
        let plain = |text: &str| {
            text.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).collect::<String>()
        };
        let local: String = tenant
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
            .collect();
        let email = email.map(|email| plain(email.trim())).filter(|email| !email.is_empty());
        let name = Some(plain(tenant))
            .filter(|name| !name.trim().is_empty())
            .unwrap_or_else(|| "wattle".to_owned());
        Author { name, email: email.unwrap_or_else(|| format!("{local}@wattle.invalid")) }
    }
}

/// Searches the folders of a `PATH` for the `git` binary. Returns the path of the binary, or `None`
/// if no folder contains it. Relative folders are ignored.
#[must_use]
pub fn find_git(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
}

/// A broker that commits and pushes one workdir with this machine's `git`.
///
/// Each call has fixed arguments and a clean environment. The caller supplies only the message,
/// which is passed on stdin.
pub struct Broker {
    git: PathBuf,
    workdir: PathBuf,
    to: PushTo,
    author: Author,
    /// The pathspecs of the host's own files, which are never committed.
    excluded: Vec<String>,
    /// A lock that allows one sequence at a time.
    lock: Mutex<()>,
}

/// The sequence of `git` calls for one commit and its push.
struct Sequence<'a> {
    broker: &'a Broker,
    home: tempfile::TempDir,
    deadline: Instant,
}

/// A summary of a new commit.
struct CommitSummary {
    /// The number of changed files, such as `3 files`.
    files: String,
    /// The short hash.
    name: String,
}

impl Broker {
    /// Creates a broker for a workdir.
    ///
    /// # Errors
    /// If the workdir is missing, or if it contains the remote, because a run could then write the
    /// remote's hooks.
    pub fn new(
        git: PathBuf,
        workdir: &Path,
        to: PushTo,
        author: Author,
    ) -> Result<Broker, NoRepository> {
        let workdir = workdir
            .canonicalize()
            .map_err(|cause| NoRepository(format!("failed to open the workdir: {cause}")))?;
        let inside = to.remote.folder().is_some_and(|remote| {
            remote.starts_with(&workdir)
                || remote.canonicalize().is_ok_and(|remote| remote.starts_with(&workdir))
        });
        if inside {
            let why = "the remote is inside the workdir, where a run could change it; the \
                       operator sets another `git.remote`";
            return Err(NoRepository(why.to_owned()));
        }
        let excluded = excluded(&HostFiles::default(), &workdir);
        Ok(Broker { git, workdir, to, author, excluded, lock: Mutex::default() })
    }

    /// Excludes the host's own files from every commit.
    #[must_use]
    pub fn excluding(self, files: &HostFiles) -> Broker {
        Broker { excluded: excluded(files, &self.workdir), ..self }
    }

    async fn commit_and_push(&self, message: String) -> Result<String, Failure> {
        let _locked = self.lock.lock().await;
        let workdir = self.workdir.clone();
        let inspected = tokio::task::spawn_blocking(move || repository::inspect(&workdir)).await;
        let inspected =
            inspected.map_err(|_| Failure::new(Code::ECANCEL, "the host is shutting down"))?;
        let state = inspected.map_err(|why| Failure::new(Code::EACCESS, why))?;
        let home = tempfile::Builder::new().prefix("wattle-git-").tempdir();
        let home = home.map_err(|cause| {
            Failure::new(Code::ETRFM, format!("failed to create a folder for git: {cause}"))
        })?;
        let sequence = Sequence { broker: self, home, deadline: Instant::now() + TIME };
        sequence.check(state).await?;
        let committed = sequence.commit(message).await?;
        sequence.push(committed).await
    }
}

impl Repository for Broker {
    fn commit_push(&self, message: String) -> PortFuture<'_, String> {
        Box::pin(self.commit_and_push(message))
    }
}

impl Sequence<'_> {
    /// Creates the repository if it is missing. Checks that its configuration contains only allowed
    /// keys.
    async fn check(&self, state: State) -> Result<(), Failure> {
        if state == State::Absent {
            let branch = format!("--initial-branch={}", self.broker.to.branch);
            self.expect_success(&["init", "-q", "--template=", &branch]).await?;
        }
        let listed =
            self.call(&["config", "--file", ".git/config", "--no-includes", "--list", "-z"], None);
        let ProcessOutput { code, out, err } = listed.await?;
        if code != Some(0) {
            return Err(
                self.failed(&format!("failed to read the repository's configuration: {err}"))
            );
        }
        match repository::forbidden(&out) {
            None => Ok(()),
            Some(key) => {
                let key: String = key.chars().filter(|c| !c.is_control()).take(100).collect();
                let message = format!(
                    "the repository's configuration sets `{key}`, which is not an allowed key; \
                     the operator removes it from `.git/config`"
                );
                Err(Failure::new(Code::EACCESS, message))
            }
        }
    }

    /// Commits all changes. Returns `None` if nothing changed.
    async fn commit(&self, message: String) -> Result<Option<CommitSummary>, Failure> {
        let mut add = vec!["add", "--all", "--", "."];
        add.extend(self.broker.excluded.iter().map(String::as_str));
        self.expect_success(&add).await?;
        let changed = self
            .expect_success(&[
                "diff",
                "--cached",
                "--no-ext-diff",
                "--no-textconv",
                "--no-renames",
                "--shortstat",
            ])
            .await?;
        let Some(files) = changed.split_whitespace().next() else { return Ok(None) };
        let commit =
            ["commit", "-q", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "-F", "-"];
        let done = self.call(&commit, Some(message.into_bytes())).await?;
        if done.code != Some(0) {
            return Err(self.failed(&format!("git failed to commit: {}", done.err)));
        }
        let name = self.expect_success(&["rev-parse", "--short", "HEAD"]).await?;
        let files = if files == "1" { "1 file".to_owned() } else { format!("{files} files") };
        Ok(Some(CommitSummary { files, name: name.trim().to_owned() }))
    }

    /// Pushes the current commit to the remote branch and describes the outcome.
    async fn push(&self, committed: Option<CommitSummary>) -> Result<String, Failure> {
        let branch = &self.broker.to.branch;
        let commits = self.call(&["rev-parse", "--verify", "-q", "HEAD"], None).await?;
        if commits.code != Some(0) {
            return Ok("nothing to commit: the workdir is empty".to_owned());
        }
        // The name is random, so that nothing in the repository's configuration applies to this
        // remote.
        let remote = format!("wattle-{:016x}", random()?);
        let target = format!("HEAD:refs/heads/{branch}");
        let push = [
            "push",
            "--porcelain",
            "--no-verify",
            "--no-signed",
            "--no-follow-tags",
            &remote,
            &target,
        ];
        let done = self.call_with(&push, None, self.remote(&remote)).await?;
        if done.code != Some(0) {
            return Err(self.push_failure(&done, committed.is_some()));
        }
        let up_to_date = done.out.lines().any(|line| line.starts_with('='));
        Ok(match committed {
            Some(CommitSummary { files, name }) => {
                format!("committed {files} as {name} and pushed to {branch}")
            }
            None if up_to_date => format!("nothing to commit; {branch} is up to date"),
            None => format!("nothing to commit; pushed the earlier commits to {branch}"),
        })
    }

    /// Returns environment variables that configure the remote under the given name. They are used
    /// instead of command-line arguments, which would be visible to every user of the machine.
    fn remote(&self, name: &str) -> Vec<(String, String)> {
        let PushTo { remote, token, files, .. } = &self.broker.to;
        let mut settings = vec![(format!("remote.{name}.url"), remote.as_str().to_owned())];
        if let Some(token) = token.as_ref().filter(|_| remote.protocol().starts_with("http")) {
            let pair = base64::engine::general_purpose::STANDARD
                .encode(format!("x-access-token:{}", token.reveal()));
            settings.push((
                format!("http.{}.extraHeader", remote.as_str()),
                format!("Authorization: Basic {pair}"),
            ));
        }
        if let Some(ca) = files.ca() {
            settings.push(("http.sslCAInfo".to_owned(), ca.to_owned()));
        }
        let count = ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
        let each = settings.into_iter().enumerate().flat_map(|(at, (key, value))| {
            [(format!("GIT_CONFIG_KEY_{at}"), key), (format!("GIT_CONFIG_VALUE_{at}"), value)]
        });
        std::iter::once(count).chain(each).collect()
    }

    fn push_failure(&self, done: &ProcessOutput, committed: bool) -> Failure {
        let branch = &self.broker.to.branch;
        let note = if committed { "; the commit stays in the workdir" } else { "" };
        let rejected = done.out.lines().find(|line| line.starts_with('!')).unwrap_or_default();
        if rejected.contains("[rejected]")
            && (rejected.contains("fetch first") || rejected.contains("non-fast-forward"))
        {
            let message = format!(
                "nothing was pushed: {branch} has commits that the workdir does not have, and a \
                 push never overwrites{note}; tell the user to merge them"
            );
            return Failure::new(Code::EEXIST, message);
        }
        let output = if rejected.is_empty() {
            &done.err
        } else {
            rejected.rsplit('\t').next().unwrap_or(rejected)
        };
        let output = self.clean(output);
        let hint =
            HINTS.iter().find(|(words, _)| words.iter().any(|words| done.err.contains(words)));
        let hint = hint.map_or("", |(_, hint)| hint);
        Failure::new(Code::EREMOTE, format!("nothing was pushed{note}: {output}{hint}"))
    }

    /// Calls `git` and returns its output. Fails if the exit code is not 0.
    async fn expect_success(&self, args: &[&str]) -> Result<String, Failure> {
        let done = self.call(args, None).await?;
        match done.code {
            Some(0) => Ok(done.out),
            _ => Err(self.failed(&format!(
                "git {} failed: {}",
                args.first().unwrap_or(&""),
                done.err
            ))),
        }
    }

    async fn call(&self, args: &[&str], input: Option<Vec<u8>>) -> Result<ProcessOutput, Failure> {
        self.call_with(args, input, Vec::new()).await
    }

    async fn call_with(
        &self,
        args: &[&str],
        input: Option<Vec<u8>>,
        more: Vec<(String, String)>,
    ) -> Result<ProcessOutput, Failure> {
        let Broker { git, workdir, to, author, .. } = self.broker;
        let protocol = to.remote.protocol();
        let allowed = format!("protocol.{protocol}.allow=always");
        let settings =
            SETTINGS.iter().copied().chain([allowed.as_str()]).flat_map(|setting| ["-c", setting]);
        let mut variables = more;
        for (name, value) in [
            ("GIT_ALLOW_PROTOCOL", protocol),
            ("GIT_SSH_COMMAND", &to.files.ssh_command()),
            ("GIT_AUTHOR_NAME", &author.name),
            ("GIT_AUTHOR_EMAIL", &author.email),
            ("GIT_COMMITTER_NAME", &author.name),
            ("GIT_COMMITTER_EMAIL", &author.email),
        ] {
            variables.push((name.to_owned(), value.to_owned()));
        }
        let args = settings.chain(args.iter().copied()).map(str::to_owned).collect();
        let call = Call {
            git,
            workdir,
            home: self.home.path(),
            args,
            variables,
            input,
            deadline: self.deadline,
        };
        process::run(call).await.map_err(|stopped| match stopped {
            ProcessError::TimedOut => Failure::new(
                Code::ETIME,
                format!("git took longer than {} s and was stopped", TIME.as_secs()),
            ),
            ProcessError::TooLong => Failure::new(
                Code::EACCESS,
                "git printed more than 64 KiB, so the repository cannot be checked; the operator \
                 shortens `.git/config`",
            ),
            ProcessError::Failed(cause) => self.failed(&format!("failed to run git: {cause}")),
        })
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::new(Code::ETRFM, self.clean(why))
    }

    /// Returns `git`'s output as a single truncated line, without the token or the workdir's
    /// absolute path.
    fn clean(&self, output: &str) -> String {
        let output = match &self.broker.to.token {
            Some(token) => token.scrub(output),
            None => output.to_owned(),
        };
        let output = output.replace(&*self.broker.workdir.to_string_lossy(), ".");
        let lines: Vec<&str> =
            output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        truncate(&lines.join("; ").replace(char::is_control, " "), QUOTED).into_owned()
    }
}

/// Returns the pathspecs that exclude the host's files from a commit. Temporary files have random
/// names, so they are excluded by patterns.
fn excluded(files: &HostFiles, workdir: &Path) -> Vec<String> {
    let names = files.not_committed(workdir).into_iter();
    let each = names.filter_map(|path| Some(format!(":(top,exclude,literal){}", path.to_str()?)));
    each.chain([
        ":(top,exclude,glob)**/.wattle-tmp-*/**".to_owned(),
        ":(top,exclude,glob)**/.wattle-tmp-*".to_owned(),
    ])
    .collect()
}

fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|cause| Failure::new(Code::ETRFM, format!("no random number: {cause}")))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_the_tenant_in_plain_letters() {
        for (tenant, email, name, address) in [
            ("acme", None, "acme", "acme@wattle.invalid"),
            ("Ada & Co <x@y>", None, "Ada & Co x@y", "Ada---Co--x-y-@wattle.invalid"),
            ("acme", Some(" bot@acme.example "), "acme", "bot@acme.example"),
            ("acme", Some("<a>\n"), "acme", "a"),
        ] {
            assert_eq!(
                Author::of(tenant, email),
                Author { name: name.to_owned(), email: address.to_owned() }
            );
        }
    }

    #[test]
    fn git_is_found_in_absolute_folders_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("git"), "").unwrap();
        let path = std::env::join_paths([Path::new("."), Path::new("bin"), folder.path()]).unwrap();
        assert_eq!(find_git(&path), Some(folder.path().join("git")));
        assert_eq!(find_git(OsStr::new(".:bin")), None);
    }
}
