//! A workdir with a file to push, and a bare repository as its remote.

use std::path::{Path, PathBuf};
use std::process::Command;

use wattle_capability::git::{Author, Broker, PushTo, RemoteFiles, Repository, find_git};
use wattle_capability::secrets::ApiKey;

/// Returns the program that a test needs. If it is missing, prints a note and returns `None`, or
/// panics in CI.
pub(crate) fn needed(found: Option<PathBuf>, what: &str) -> Option<PathBuf> {
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{what} is not installed, but CI requires it");
        println!("skipped: {what} is not installed on this machine");
    }
    found
}

/// Finds a program in the folders of `PATH`, or in the system folders for programs.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

pub(crate) fn git() -> Option<PathBuf> {
    find_git(&std::env::var_os("PATH").unwrap_or_default())
}

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("work")).unwrap();
        std::fs::write(place.path("work/a.txt"), "one").unwrap();
        place.git(&["init", "-q", "--bare", "-b", "main", "site.git"]);
        place
    }

    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new(git().unwrap());
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Commits and pushes with the broker.
    pub(crate) async fn push(
        &self,
        remote: &str,
        token: Option<&str>,
        files: RemoteFiles,
    ) -> Result<String, String> {
        let token = token.map(|token| ApiKey::new(token).unwrap());
        let to = PushTo {
            remote: remote.parse().unwrap(),
            branch: "main".parse().unwrap(),
            token,
            files,
        };
        let broker =
            Broker::new(git().unwrap(), &self.path("work"), to, Author::of("acme", None)).unwrap();
        broker.commit_push("add a".to_owned()).await.map_err(|why| why.to_string())
    }

    /// Returns the number of commits in the workdir.
    fn committed(&self) -> usize {
        if !self.path("work/.git").is_dir() {
            return 0;
        }
        self.git(&["--git-dir=work/.git", "rev-list", "--all"]).lines().count()
    }

    /// Returns the files on the remote branch.
    pub(crate) fn pushed(&self) -> Vec<String> {
        let listed = self.git(&["--git-dir=site.git", "for-each-ref"]);
        if listed.is_empty() {
            return Vec::new();
        }
        let files = self.git(&["--git-dir=site.git", "ls-tree", "-r", "--name-only", "main"]);
        files.lines().map(str::to_owned).collect()
    }

    /// Pushes and asserts that the push fails. The error must contain `words` and no secret, and
    /// the remote must stay empty. The commit must stay in the workdir. If this call creates the
    /// commit, the error must also report that the commit stays in the workdir.
    pub(crate) async fn refused(
        &self,
        remote: &str,
        token: Option<&str>,
        files: RemoteFiles,
        words: &str,
    ) {
        let before = self.committed();
        let why = self.push(remote, token, files).await.expect_err("the push succeeds");
        let expected = if before == 0 {
            "nothing was pushed; the commit stays in the workdir: "
        } else {
            "nothing was pushed: "
        };
        assert!(
            why.starts_with("EREMOTE") && why.contains(expected),
            "{expected:?} is not in {why}"
        );
        assert_eq!(self.committed(), 1, "{why}");
        assert!(why.contains(words), "{words:?} is not in {why}");
        assert!(!why.contains("t0ken"), "{why}");
        assert!(self.pushed().is_empty());
    }
}
