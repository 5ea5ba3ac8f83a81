//! Tests of the bundled commands as stages.

use std::sync::{Arc, OnceLock};

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_cases::guests::SharedGuests;
use wattle_shell::{Command, CommandOutcome, StageBounds, Status, Stream, Toolbox};

use super::guest::Echo;

fn toolbox() -> &'static Toolbox {
    static TOOLBOX: OnceLock<Toolbox> = OnceLock::new();
    TOOLBOX.get_or_init(|| Toolbox::new(Some(SharedGuests::in_target().folder())).unwrap())
}

fn files() -> Arc<Files> {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.write("/a/b.txt", b"pear\napple\nfig\n").unwrap();
    Arc::new(files)
}

async fn stage(
    files: &Arc<Files>,
    cwd: &str,
    argv: &[&str],
    input: Stream,
    output: Stream,
    errors: Stream,
) -> CommandOutcome {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let fds = vec![(0, input), (1, output), (2, errors)];
    let command = Command { argv, env: Vec::new(), cwd: cwd.to_owned(), fds };
    toolbox().run(command, files, Arc::new(Echo), &StageBounds::default()).await
}

/// Runs one command and returns its status, its standard output and its standard error.
async fn one(files: &Arc<Files>, cwd: &str, argv: &[&str], input: &str) -> (u8, String, String) {
    let (output, written) = Stream::capture(1 << 24);
    let (errors, captured_errors) = Stream::capture(1 << 16);
    let outcome = stage(files, cwd, argv, Stream::bytes(input.to_owned()), output, errors).await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (outcome.status().0, text(written.take()), text(captured_errors.take()))
}

#[tokio::test]
async fn commands_work_on_the_runs_files() {
    let files = files();
    let done = |output: &str| (0, output.to_owned(), String::new());
    assert_eq!(one(&files, "/", &["echo", "a", "b c"], "").await, done("a b c\n"));
    assert_eq!(one(&files, "/a", &["cat", "b.txt"], "").await, done("pear\napple\nfig\n"));
    assert_eq!(one(&files, "/", &["cat"], "from the pipe").await, done("from the pipe"));
    assert_eq!(one(&files, "/", &["sort", "a/b.txt"], "").await, done("apple\nfig\npear\n"));
    assert_eq!(one(&files, "/", &["mkdir", "-p", "x/y"], "").await, done(""));
    assert_eq!(one(&files, "/", &["cp", "a/b.txt", "x/y/copy"], "").await, done(""));
    assert_eq!(one(&files, "/x", &["mv", "y/copy", "../moved"], "").await, done(""));
    assert_eq!(one(&files, "/", &["ls"], "").await, done("a\nmoved\nx\n"));
    assert_eq!(one(&files, "/", &["tee", "out"], "twice").await, done("twice"));
    assert_eq!(one(&files, "/", &["rm", "-r", "x", "a"], "").await, done(""));
    assert_eq!(files.read("moved").unwrap(), "pear\napple\nfig\n");
    assert_eq!(files.read("out").unwrap(), "twice");
    assert_eq!(files.list("/").unwrap().len(), 2);
    assert_eq!(one(&files, "/", &["false"], "").await.0, 1);
}

#[tokio::test]
async fn a_refusal_is_reported_if_the_command_fails() {
    let (status, output, errors) = one(&files(), "/", &["cat", "../secret", "../more"], "").await;
    assert_eq!((status, output.as_str()), (1, ""));
    let outside = "is outside the run's folder; only files in it can be read";
    assert_eq!(errors.matches(outside).count(), 1, "{errors}");
}

/// Tests absolute paths, which the C library makes relative to the root before the host sees them.
#[tokio::test]
async fn a_folder_of_the_system_is_outside() {
    let files = files();
    let done = |output: &str| (0, output.to_owned(), String::new());
    for (argv, what) in [
        (&["cat", "/etc/shadow"][..], "/etc/shadow is outside the run's folder; only files in it "),
        (&["ls", "/usr/lib"], "/usr/lib is outside the run's folder; only files in it can be read"),
        (&["find", "/proc", "-name", "x"], "/proc is outside"),
        (&["awk", "{print}", "/home/ada/x"], "/home/ada/x is outside"),
        (&["cp", "a/b.txt", "/etc/x"], "/etc/x is outside"),
        (&["mkdir", "/var"], "/var is outside the run's folder; only files in it can be written"),
        (&["mkdir", "-p", "/var/x"], "only files in it can be "),
    ] {
        let (status, _, errors) = one(&files, "/", argv, "").await;
        assert!(status != 0 && errors.contains(what), "{argv:?}: {errors}");
    }
    for argv in [&["cat", "etc/shadow"][..], &["cat", "./etc/shadow"], &["cat", "/tmp/x"]] {
        let (status, _, errors) = one(&files, "/", argv, "").await;
        assert!(status == 1 && !errors.contains("outside"), "{argv:?}: {errors}");
    }
    for argv in [&["mkdir", "-p", "etc/x", "/lib/x"][..], &["cp", "a/b.txt", "/etc/x/y"]] {
        assert_eq!(one(&files, "/", argv, "").await, done(""), "{argv:?}");
    }
    assert_eq!(one(&files, "/", &["cat", "/etc/x/y"], "").await.0, 0);
    assert_eq!(one(&files, "/", &["ls"], "").await, done("a\netc\nlib\n"));
}

#[tokio::test]
async fn stages_run_in_parallel() {
    let files = files();
    let (numbers, seq) = Stream::pipe();
    let (few, head) = Stream::pipe();
    let (output, written) = Stream::capture(1 << 16);
    let null = Stream::null;
    let outcome = tokio::join!(
        stage(&files, "/", &["seq", "1000000000"], null(), seq, null()),
        stage(&files, "/", &["head", "-n", "3"], numbers, head, null()),
        stage(&files, "/", &["sort", "-r"], few, output, null()),
    );
    assert_eq!(outcome.0.status(), Status(141));
    assert_eq!((outcome.1.status(), outcome.2.status()), (Status(0), Status(0)));
    assert_eq!(written.take(), b"3\n2\n1\n");
}

#[tokio::test]
async fn only_the_owner_can_access_the_compiled_module() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("deep/cache");
    let wasm = wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#)
        .unwrap();
    for _ in 0..2 {
        let toolbox = Toolbox::with_module(wasm.clone(), &["b", "a"], Some(&cache));
        toolbox.prepare().await.unwrap();
        assert_eq!(toolbox.names().collect::<Vec<_>>(), ["a", "b"]);
        assert!(toolbox.has("b") && !toolbox.has("c"));
    }
    assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(std::fs::read_dir(&cache).unwrap().count() >= 2, "a module and the lock");
}
