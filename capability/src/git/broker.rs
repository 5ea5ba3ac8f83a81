//! The broker: the one sequence of `git` calls that a trusted run can have carried out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use wattle_rt::{Code, Failure, truncate};

use super::process::{self, Call, Done, Stopped};
use super::remote::{Branch, Remote, RemoteFiles};
use super::repository::{self, State};
use super::{NoRepository, Repository};
use crate::PortFuture;
use crate::files::HostFiles;
use crate::secrets::Secret;

/// The time that a commit and a push may take together.
const TIME: Duration = Duration::from_secs(120);

/// The most characters that a failure repeats of what `git` said.
const SAID: usize = 400;

/// Settings that every call is made with, over whatever the repository says. Each takes a way to start a program, to ask somebody, or to
/// reach a place that the operator did not name.
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

/// What the operator can do about what `git` says.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["Permission denied (", "Load key "],
        "; the remote does not take the key; the operator names another by `git.ssh_key`",
    ),
    (
        &["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"],
        "; the remote's host key is not the known one; the operator verifies it and names the file with it by `git.known_hosts`",
    ),
    (
        &["could not read Username", "Authentication failed", "Permission denied", "returned error: 403"],
        "; the operator gives access, for a remote over https by `git.token_env`",
    ),
    (
        &["certificate", "SSL"],
        "; the remote's certificate is not trusted; the operator names the authority's by `git.ca_file`",
    ),
];

/// Where the broker pushes to.
#[derive(Clone, Debug)]
pub struct PushTo {
    /// The remote.
    pub remote: Remote,
    /// The branch of the remote.
    pub branch: Branch,
    /// The token that a remote over http or https is shown.
    pub token: Option<Secret>,
    /// The operator's files for certificates and keys.
    pub files: RemoteFiles,
}

/// Whom the commits are by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    name: String,
    email: String,
}

impl Author {
    /// The tenant, at that address or at one that no mail reaches.
    #[must_use]
    pub fn of(tenant: &str, email: Option<&str>) -> Author {
        let plain = |text: &str| text.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).collect::<String>();
        let local: String =
            tenant.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
        let email = email.map(|email| plain(email.trim())).filter(|email| !email.is_empty());
        let name = Some(plain(tenant)).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "wattle".to_owned());
        Author { name, email: email.unwrap_or_else(|| format!("{local}@wattle.invalid")) }
    }
}

/// Finds the binary in the folders of a `PATH`; only absolute ones count.
#[must_use]
pub fn find_git(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
}

/// Commits and pushes one workdir by the `git` of this machine.
///
/// The calls are made one by one, each with a fixed list of arguments and an environment of its own; nothing of the caller's comes
/// through but the message, which goes in by stdin.
pub struct Broker {
    git: PathBuf,
    workdir: PathBuf,
    to: PushTo,
    author: Author,
    /// What is not committed: the host's own files, which change while the run goes on or are nobody else's business.
    kept_out: Vec<String>,
    /// One sequence at a time.
    turn: Mutex<()>,
}

/// One sequence of calls.
struct Sequence<'a> {
    broker: &'a Broker,
    home: tempfile::TempDir,
    deadline: Instant,
}

/// A commit that was made.
struct Committed {
    /// How many files it changes, in words.
    files: String,
    /// Its short name.
    name: String,
}

impl Broker {
    /// A broker for that workdir.
    ///
    /// # Errors
    /// Where the workdir is not there, or the remote lies in it: a run could write the remote's hooks.
    pub fn new(git: PathBuf, workdir: &Path, to: PushTo, author: Author) -> Result<Broker, NoRepository> {
        let workdir =
            workdir.canonicalize().map_err(|cause| NoRepository(format!("the workdir cannot be opened: {cause}")))?;
        let inside = to.remote.folder().is_some_and(|remote| {
            remote.starts_with(&workdir) || remote.canonicalize().is_ok_and(|remote| remote.starts_with(&workdir))
        });
        if inside {
            let why = "the remote lies inside the workdir, where a run could change it; the operator sets another `git.remote`";
            return Err(NoRepository(why.to_owned()));
        }
        let kept_out = kept_out(&HostFiles::default(), &workdir);
        Ok(Broker { git, workdir, to, author, kept_out, turn: Mutex::default() })
    }

    /// Keeps these files of the host's own out of every commit.
    #[must_use]
    pub fn protecting(self, files: &HostFiles) -> Broker {
        Broker { kept_out: kept_out(files, &self.workdir), ..self }
    }

    async fn commit_and_push(&self, message: String) -> Result<String, Failure> {
        let _turn = self.turn.lock().await;
        let workdir = self.workdir.clone();
        let looked = tokio::task::spawn_blocking(move || repository::look(&workdir)).await;
        let looked = looked.map_err(|_| Failure::new(Code::ECANCEL, "the host is shutting down"))?;
        let state = looked.map_err(|why| Failure::new(Code::EACCESS, why))?;
        let home = tempfile::Builder::new().prefix("wattle-git-").tempdir();
        let home =
            home.map_err(|cause| Failure::new(Code::ETRFM, format!("no folder for git could be made: {cause}")))?;
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
    /// Makes the repository where there is none, and holds its configuration against what it may have.
    async fn check(&self, state: State) -> Result<(), Failure> {
        if state == State::Absent {
            let branch = format!("--initial-branch={}", self.broker.to.branch);
            self.must(&["init", "-q", "--template=", &branch]).await?;
        }
        let listed =
            self.call(&["config", "--file", ".git/config", "--no-includes", "--list", "--name-only", "-z"], None);
        let Done { code, out, err } = listed.await?;
        if code != Some(0) {
            return Err(self.failed(&format!("the repository's configuration cannot be read: {err}")));
        }
        match repository::forbidden(&out) {
            None => Ok(()),
            Some(key) => {
                let key: String = key.chars().filter(|c| !c.is_control()).take(100).collect();
                let words = format!(
                    "the repository's configuration sets `{key}`, which is not among the keys that are safe here; the operator \
                     removes it from `.git/config`"
                );
                Err(Failure::new(Code::EACCESS, words))
            }
        }
    }

    /// Commits everything; `None` where nothing changed.
    async fn commit(&self, message: String) -> Result<Option<Committed>, Failure> {
        let mut add = vec!["add", "--all", "--", "."];
        add.extend(self.broker.kept_out.iter().map(String::as_str));
        self.must(&add).await?;
        let changed =
            self.must(&["diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-renames", "--shortstat"]).await?;
        let Some(files) = changed.split_whitespace().next() else { return Ok(None) };
        let commit = ["commit", "-q", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "-F", "-"];
        let done = self.call(&commit, Some(message.into_bytes())).await?;
        if done.code != Some(0) {
            return Err(self.failed(&format!("git could not commit: {}", done.err)));
        }
        let name = self.must(&["rev-parse", "--short", "HEAD"]).await?;
        let files = if files == "1" { "1 file".to_owned() } else { format!("{files} files") };
        Ok(Some(Committed { files, name: name.trim().to_owned() }))
    }

    /// Pushes what the workdir's branch is at.
    async fn push(&self, committed: Option<Committed>) -> Result<String, Failure> {
        let branch = &self.broker.to.branch;
        let commits = self.call(&["rev-parse", "--verify", "-q", "HEAD"], None).await?;
        if commits.code != Some(0) {
            return Ok("nothing to commit: the workdir is empty".to_owned());
        }
        // A name that no configuration can have foreseen: what a repository says of its remotes is not about this one.
        let remote = format!("wattle-{:016x}", random()?);
        let target = format!("HEAD:refs/heads/{branch}");
        let push = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", &remote, &target];
        let done = self.call_with(&push, None, self.remote(&remote)).await?;
        if done.code != Some(0) {
            return Err(self.not_pushed(&done, committed.is_some()));
        }
        let up_to_date = done.out.lines().any(|line| line.starts_with('='));
        Ok(match committed {
            Some(Committed { files, name }) => format!("committed {files} as {name} and pushed to {branch}"),
            None if up_to_date => format!("nothing to commit; {branch} has everything already"),
            None => format!("nothing to commit; pushed what was committed before to {branch}"),
        })
    }

    /// The configuration of the remote, by variables: arguments can be seen by everybody on the machine.
    fn remote(&self, name: &str) -> Vec<(String, String)> {
        let PushTo { remote, token, files, .. } = &self.broker.to;
        let mut settings = vec![(format!("remote.{name}.url"), remote.as_str().to_owned())];
        if let Some(token) = token.as_ref().filter(|_| remote.protocol().starts_with("http")) {
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{}", token.reveal()));
            settings.push((format!("http.{}.extraHeader", remote.as_str()), format!("Authorization: Basic {pair}")));
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

    fn not_pushed(&self, done: &Done, committed: bool) -> Failure {
        let branch = &self.broker.to.branch;
        let kept = if committed { "; the commit stays in the workdir" } else { "" };
        let refused = done.out.lines().find(|line| line.starts_with('!')).unwrap_or_default();
        if refused.contains("[rejected]") && (refused.contains("fetch first") || refused.contains("non-fast-forward")) {
            let words = format!(
                "nothing was pushed: {branch} has commits that the workdir lacks, and pushing never overwrites{kept}; tell the \
                 user to merge them"
            );
            return Failure::new(Code::EEXIST, words);
        }
        let said = if refused.is_empty() { &done.err } else { refused.rsplit('\t').next().unwrap_or(refused) };
        let said = self.shown(said);
        let hint = HINTS.iter().find(|(words, _)| words.iter().any(|words| done.err.contains(words)));
        let hint = hint.map_or("", |(_, hint)| hint);
        Failure::new(Code::EREMOTE, format!("nothing was pushed{kept}: {said}{hint}"))
    }

    /// A call that has to succeed; gives its output.
    async fn must(&self, args: &[&str]) -> Result<String, Failure> {
        let done = self.call(args, None).await?;
        match done.code {
            Some(0) => Ok(done.out),
            _ => Err(self.failed(&format!("git {} failed: {}", args.first().unwrap_or(&""), done.err))),
        }
    }

    async fn call(&self, args: &[&str], input: Option<Vec<u8>>) -> Result<Done, Failure> {
        self.call_with(args, input, Vec::new()).await
    }

    async fn call_with(
        &self,
        args: &[&str],
        input: Option<Vec<u8>>,
        more: Vec<(String, String)>,
    ) -> Result<Done, Failure> {
        let Broker { git, workdir, to, author, .. } = self.broker;
        let protocol = to.remote.protocol();
        let allowed = format!("protocol.{protocol}.allow=always");
        let settings = SETTINGS.iter().copied().chain([allowed.as_str()]).flat_map(|setting| ["-c", setting]);
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
        let call = Call { git, workdir, home: self.home.path(), args, variables, input, deadline: self.deadline };
        process::run(call).await.map_err(|stopped| match stopped {
            Stopped::Late => {
                Failure::new(Code::ETIME, format!("git took longer than {} s and was ended", TIME.as_secs()))
            }
            Stopped::Failed(cause) => self.failed(&format!("git could not be run: {cause}")),
        })
    }

    fn failed(&self, why: &str) -> Failure {
        Failure::new(Code::ETRFM, self.shown(why))
    }

    /// What `git` said, on one line, without the token and without the places of this machine.
    fn shown(&self, said: &str) -> String {
        let said = match &self.broker.to.token {
            Some(token) => token.scrub_text(said),
            None => said.to_owned(),
        };
        let said = said.replace(&*self.broker.workdir.to_string_lossy(), ".");
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        truncate(&lines.join("; ").replace(char::is_control, " "), SAID).into_owned()
    }
}

/// What tells `git` to leave those files out. A place where changes are prepared has a name of its own each time.
fn kept_out(files: &HostFiles, workdir: &Path) -> Vec<String> {
    let names = files.not_committed(workdir).into_iter();
    let each = names.filter_map(|path| Some(format!(":(top,exclude,literal){}", path.to_str()?)));
    each.chain([":(top,exclude,glob)**/.wattle-tmp-*/**".to_owned(), ":(top,exclude,glob)**/.wattle-tmp-*".to_owned()])
        .collect()
}

fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|cause| Failure::new(Code::ETRFM, format!("no random number: {cause}")))?;
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
            assert_eq!(Author::of(tenant, email), Author { name: name.to_owned(), email: address.to_owned() });
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
