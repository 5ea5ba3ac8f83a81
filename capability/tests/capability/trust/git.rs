//! Tests the git broker on real repositories, including hostile ones.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use wattle_capability::git::{Author, Broker, PushTo, RemoteFiles, Repository, find_git};

fn git() -> PathBuf {
    find_git(&std::env::var_os("PATH").unwrap()).expect("these tests need git")
}

/// A workdir and a bare repository beside it.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.work()).unwrap();
        place.git(place.dir.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        place
    }

    fn with_repository() -> Place {
        let place = Place::new();
        place.git(&place.work(), &["init", "-q", "-b", "main"]);
        place
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn remote(&self) -> PathBuf {
        self.dir.path().join("remote.git")
    }

    /// Returns the path of the file that the hostile programs of these tests create when they run.
    fn trap(&self) -> PathBuf {
        self.dir.path().join("sprung")
    }

    /// Writes a program that creates the file [`trap`](Self::trap) when it runs. Returns the path
    /// of the program.
    fn evil(&self) -> String {
        let path = self.dir.path().join("evil.sh");
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\ncat\n", self.trap().display()))
            .unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, folder: &Path, args: &[&str]) -> String {
        let mut command = Command::new(git());
        command.args([
            "-c",
            "user.name=other",
            "-c",
            "user.email=other@example.com",
            "-c",
            "protocol.file.allow=always",
        ]);
        command
            .args(args)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    fn broker(&self) -> Broker {
        let remote = self.remote().to_str().unwrap().parse().unwrap();
        let to = PushTo {
            remote,
            branch: "main".parse().unwrap(),
            token: None,
            files: RemoteFiles::default(),
        };
        Broker::new(git(), &self.work(), to, Author::of("acme", None)).unwrap()
    }

    async fn push(&self, message: &str) -> Result<String, String> {
        self.broker().commit_push(message.to_owned()).await.map_err(|failure| failure.to_string())
    }

    fn pushed(&self, format: &str) -> String {
        self.git(&self.remote(), &["log", "-1", &format!("--format={format}"), "main"])
            .trim()
            .to_owned()
    }

    fn pushed_files(&self) -> Vec<String> {
        self.git(&self.remote(), &["ls-tree", "-r", "--name-only", "main"])
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[tokio::test]
async fn everything_is_committed_as_the_tenant_and_pushed() {
    for place in [Place::new(), Place::with_repository()] {
        place.write("notes/may.md", "rain\n");
        place.write("a b.txt", "x");
        place.write("_steps.jsonl", "{}\n");
        place.write("_issues.jsonl", "{}\n");
        let output = place.push("add the notes\n\nof May").await.unwrap();
        let short = place.git(&place.work(), &["rev-parse", "--short", "HEAD"]);
        assert_eq!(output, format!("committed 2 files as {} and pushed to main", short.trim()));
        assert_eq!(place.pushed_files(), ["a b.txt", "notes/may.md"], "the host's own files stay");
        let by = place.pushed("%an|%ae|%cn|%ce|%B");
        assert_eq!(by, "acme|acme@wattle.invalid|acme|acme@wattle.invalid|add the notes\n\nof May");

        assert_eq!(place.push("again").await.unwrap(), "nothing to commit; main is up to date");
        std::fs::remove_file(place.work().join("a b.txt")).unwrap();
        let output = place.push("remove one").await.unwrap();
        assert!(output.starts_with("committed 1 file as "), "{output}");
        assert_eq!(place.pushed_files(), ["notes/may.md"]);
    }
    assert_eq!(Place::new().push("x").await.unwrap(), "nothing to commit: the workdir is empty");
}

#[tokio::test]
async fn a_message_is_text_and_never_an_option() {
    let place = Place::with_repository();
    for (count, message) in
        ["--amend", "-F /etc/passwd", "$(touch sprung) `id` ; \"'", "# not a comment"]
            .iter()
            .enumerate()
    {
        place.write("count.txt", &count.to_string());
        place.push(message).await.unwrap();
        assert_eq!(place.pushed("%B"), *message);
    }
    assert_eq!(place.git(&place.remote(), &["rev-list", "--count", "main"]).trim(), "4");
}

#[tokio::test]
async fn other_commits_of_the_remote_are_never_overwritten() {
    let place = Place::with_repository();
    place.write("a.txt", "one");
    place.push("one").await.unwrap();
    let other = place.dir.path().join("other");
    place.git(place.dir.path(), &["clone", "-q", "remote.git", "other"]);
    std::fs::write(other.join("b.txt"), "theirs").unwrap();
    place.git(&other, &["add", "-A"]);
    place.git(&other, &["commit", "-q", "-m", "theirs"]);
    place.git(&other, &["push", "-q", "origin", "HEAD:main"]);
    place.write("a.txt", "two");
    let why = place.push("two").await.unwrap_err();
    assert!(
        why.ends_with(
            ": nothing was pushed: main has commits that the workdir does not have, and a push \
             never overwrites; the commit stays in the workdir; tell the user to merge them"
        ),
        "{why}"
    );
    assert!(why.starts_with("EEXIST"), "{why}");
    assert_eq!(place.pushed("%s"), "theirs");
    // After the user has merged the remote's commits, the earlier commits are pushed.
    place.git(
        &place.work(),
        &["pull", "-q", "--no-rebase", "--no-edit", place.remote().to_str().unwrap(), "main"],
    );
    assert_eq!(
        place.push("x").await.unwrap(),
        "nothing to commit; pushed the earlier commits to main"
    );
}

#[tokio::test]
async fn a_configuration_with_a_program_or_a_location_is_refused() {
    let place = Place::with_repository();
    place.write("a.txt", "one");
    place.write(".gitattributes", "* filter=x diff=x merge=x\n");
    let clean = std::fs::read_to_string(place.work().join(".git/config")).unwrap();
    for (key, value) in [
        ("core.fsmonitor", "EVIL"),
        ("core.sshCommand", "EVIL"),
        ("core.hooksPath", "/tmp"),
        ("core.pager", "EVIL"),
        ("core.editor", "EVIL"),
        ("core.askPass", "EVIL"),
        ("core.gitProxy", "EVIL"),
        ("core.worktree", "/"),
        ("core.attributesFile", "/tmp/x"),
        ("gpg.program", "EVIL"),
        ("commit.gpgSign", "true"),
        ("credential.helper", "!EVIL"),
        ("diff.external", "EVIL"),
        ("diff.x.textconv", "EVIL"),
        ("filter.x.clean", "EVIL"),
        ("filter.x.process", "EVIL"),
        ("merge.x.driver", "EVIL"),
        ("include.path", "/tmp/evil"),
        ("includeIf.gitdir:/.path", "/tmp/evil"),
        ("url./tmp/evil.pushInsteadOf", "/"),
        ("url./tmp/evil.insteadOf", "/"),
        ("remote.origin.pushurl", "/tmp/evil"),
        ("remote.origin.receivepack", "EVIL"),
        ("remote.origin.uploadpack", "EVIL"),
        ("remote.origin.vcs", "evil"),
        ("http.proxy", "http://evil.example"),
        ("submodule.x.update", "!EVIL"),
        ("alias.push", "!EVIL"),
        ("protocol.ext.allow", "always"),
        ("extensions.worktreeConfig", "true"),
    ] {
        std::fs::write(place.work().join(".git/config"), &clean).unwrap();
        let evil = value.replace("EVIL", &place.evil());
        place.git(place.dir.path(), &["config", "--file", "work/.git/config", key, &evil]);
        let why = place.push("x").await.unwrap_err();
        let named = why.to_lowercase().contains(&key.to_lowercase());
        assert!(
            why.starts_with("EACCESS") && named && why.contains("not an allowed key"),
            "{key}: {why}"
        );
        assert!(!place.trap().exists(), "{key} ran a program");
    }
    assert!(
        std::fs::read_dir(place.remote().join("refs/heads")).unwrap().next().is_none(),
        "something was pushed"
    );
}

#[tokio::test]
async fn a_long_configuration_hides_no_program() {
    let place = Place::with_repository();
    place.write("a.txt", "one");
    place.write(".gitattributes", "* filter=x\n");
    let clean = std::fs::read_to_string(place.work().join(".git/config")).unwrap();
    let listing = || {
        let args = ["config", "--file", "work/.git/config", "--list", "-z"];
        place.git(place.dir.path(), &args).len()
    };
    // A listing of 64 KiB ends directly before the filter, within its name, or after it.
    for before in (65_490..=65_540).step_by(5).chain([65_535, 65_536, 65_537, 200_000]) {
        let padding = |length: usize| format!("{clean}[user]\n\tname = {}\n", "x".repeat(length));
        std::fs::write(place.work().join(".git/config"), padding(0)).unwrap();
        let length = before - listing();
        let filter = format!("[filter \"x\"]\n\tclean = {}\n", place.evil());
        std::fs::write(place.work().join(".git/config"), padding(length) + &filter).unwrap();
        let why = place.push("x").await.unwrap_err();
        assert!(why.starts_with("EACCESS"), "{before}: {why}");
        assert!(!place.trap().exists(), "a program ran after {before} bytes");
    }
    assert!(std::fs::read_dir(place.remote().join("refs/heads")).unwrap().next().is_none());
}

#[tokio::test]
async fn hooks_and_attributes_run_nothing() {
    let place = Place::with_repository();
    let evil = place.evil();
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "pre-push",
        "post-index-change",
        "reference-transaction",
    ] {
        std::fs::create_dir_all(place.work().join(".git/hooks")).unwrap();
        std::fs::copy(&evil, place.work().join(".git/hooks").join(hook)).unwrap();
    }
    place.write(
        ".gitattributes",
        "* filter=lfs diff=evil merge=evil working-tree-encoding=UTF-8 ident\n",
    );
    place.write("a.txt", "one");
    place.push("x").await.unwrap();
    assert!(!place.trap().exists(), "a hook was run");
    assert_eq!(place.pushed_files(), [".gitattributes", "a.txt"]);
}

#[tokio::test]
async fn a_repository_that_refers_to_another_is_refused() {
    type Prepare = fn(&Place);
    let cases: &[(&str, Prepare)] = &[
        ("`.git` is not a folder", |place| {
            std::fs::remove_dir_all(place.work().join(".git")).unwrap();
            place.write(".git", "gitdir: ../remote.git\n");
        }),
        ("`.git` is not a folder", |place| {
            std::fs::remove_dir_all(place.work().join(".git")).unwrap();
            symlink("../remote.git", place.work().join(".git")).unwrap();
        }),
        ("`.git/commondir` refers", |place| place.write(".git/commondir", "../../remote.git\n")),
        ("`.git/objects/info/alternates` refers", |place| {
            place.write(".git/objects/info/alternates", "/srv/objects\n")
        }),
        ("`.git/config.worktree` refers", |place| {
            place.write(".git/config.worktree", "[core]\n\tfsmonitor = x\n")
        }),
        ("a link or a device in its `.git`", |place| {
            symlink("/etc", place.work().join(".git/refs/heads/x")).unwrap()
        }),
        ("another repository", |place| place.write("sub/.git/config", "[core]\n\tfsmonitor = x\n")),
        ("another repository", |place| place.write("deep/er/.git", "gitdir: /tmp/x\n")),
    ];
    for (words, prepare) in cases {
        let place = Place::with_repository();
        place.write("a.txt", "one");
        prepare(&place);
        let why = place.push("x").await.unwrap_err();
        assert!(why.starts_with("EACCESS") && why.contains(words), "{words}: {why}");
    }
    // A workdir inside a repository is rejected.
    let place = Place::with_repository();
    place.write("below/a.txt", "one");
    let remote = place.remote().to_str().unwrap().parse().unwrap();
    let to = PushTo {
        remote,
        branch: "main".parse().unwrap(),
        token: None,
        files: RemoteFiles::default(),
    };
    let broker =
        Broker::new(git(), &place.work().join("below"), to, Author::of("acme", None)).unwrap();
    let why = broker.commit_push("x".to_owned()).await.unwrap_err().to_string();
    assert!(why.contains("is inside a repository"), "{why}");
}

#[tokio::test]
async fn only_the_operators_remote_is_used() {
    let place = Place::with_repository();
    place.write("a.txt", "one");
    // The repository's own remotes are not used, even if one is named like the operator's URL.
    let elsewhere = place.dir.path().join("elsewhere.git");
    place.git(place.dir.path(), &["init", "-q", "--bare", "elsewhere.git"]);
    for name in ["origin", place.remote().to_str().unwrap()] {
        place.git(
            &place.work(),
            &["config", &format!("remote.{name}.url"), elsewhere.to_str().unwrap()],
        );
    }
    place.push("x").await.unwrap();
    assert_eq!(place.pushed_files(), ["a.txt"]);
    assert!(std::fs::read_dir(elsewhere.join("refs/heads")).unwrap().next().is_none());

    let inside = place.work().join("inner.git").to_str().unwrap().parse().unwrap();
    let to = PushTo {
        remote: inside,
        branch: "main".parse().unwrap(),
        token: None,
        files: RemoteFiles::default(),
    };
    let Err(why) = Broker::new(git(), &place.work(), to, Author::of("acme", None)) else {
        panic!("a remote inside the workdir is accepted")
    };
    assert!(why.0.contains("is inside the workdir"), "{}", why.0);

    let missing = place.dir.path().join("gone.git").to_str().unwrap().parse().unwrap();
    let to = PushTo {
        remote: missing,
        branch: "main".parse().unwrap(),
        token: None,
        files: RemoteFiles::default(),
    };
    let broker = Broker::new(git(), &place.work(), to, Author::of("acme", None)).unwrap();
    let why = broker.commit_push("x".to_owned()).await.unwrap_err().to_string();
    assert!(why.starts_with("EREMOTE") && why.contains("nothing was pushed"), "{why}");
}
