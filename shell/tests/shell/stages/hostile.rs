//! Tests of hostile and faulty guests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{Command, CommandOutcome, KillReason, StageBounds, Status, Stream};

use super::guest::{Echo, Script, toolbox};

/// Runs a guest and returns its outcome and its standard error.
async fn run(wat: &str, bounds: &StageBounds, stdout: Stream) -> (CommandOutcome, String) {
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let (errors, captured_errors) = Stream::capture(1 << 16);
    let fds = vec![(0, Stream::null()), (1, stdout), (2, errors)];
    let command =
        Command { argv: vec!["/bin/guest".to_owned()], env: Vec::new(), cwd: "/".to_owned(), fds };
    let outcome = toolbox(wat).run(command, &files, Arc::new(Echo), bounds).await;
    (outcome, String::from_utf8_lossy(&captured_errors.take()).into_owned())
}

/// Returns a guest that opens the file `endless` as descriptor 4, repeatedly writes 64 KiB to the
/// descriptor `fd` until a write fails, and then exits with the error number.
fn writer(fd: u32) -> String {
    format!(
        r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (import "wasi_snapshot_preview1" "path_open"
          (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (memory (export "memory") 3)
        (data (i32.const 0) "endless")
        (func (export "_start") (local $failed i32)
          (drop (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 1) (i64.const 64)
            (i64.const 0) (i32.const 0) (i32.const 8)))
          (i32.store (i32.const 16) (i32.const 65536))
          (i32.store (i32.const 20) (i32.const 65536))
          (loop $more
            (local.set $failed (call $write (i32.const {fd}) (i32.const 16) (i32.const 1) (i32.const 24)))
            (br_if $more (i32.eqz (local.get $failed))))
          (call $exit (local.get $failed))))"#
    )
}

#[tokio::test]
async fn an_endless_loop_exceeds_its_processor_time() {
    let wat = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;
    let bounds = StageBounds { time: Duration::from_millis(100), ..StageBounds::default() };
    let (outcome, stderr) = run(wat, &bounds, Stream::null()).await;
    assert_eq!(outcome, CommandOutcome::Killed(KillReason::Time(bounds.time)));
    assert_eq!((outcome.status(), outcome.ends_pipeline()), (Status(152), true));
    assert_eq!(stderr, "guest: killed: used up its 0.1 s of processor time\n");
}

#[tokio::test]
async fn waiting_uses_no_processor_time() {
    let mut script = Script::new();
    script.bounds.time = Duration::from_millis(60);
    let mut clock = vec![0; 48];
    clock[24..32].copy_from_slice(&200_000_000u64.to_le_bytes());
    let (clock, _) = script.text(&clock);
    script.call("poll_oneoff", &[clock, 1024, 1, 0]);
    let result = script.run(&Arc::new(Files::overlay(None, OVERLAY_LIMIT))).await;
    assert_eq!((result.outcome, result.answers), (CommandOutcome::Exited(Status(0)), vec![0]));
}

#[tokio::test]
async fn memory_is_limited() {
    let grow = |then: &str| {
        format!(
            r#"(module (memory (export "memory") 1) (func (export "_start")
            (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) {then}))"#
        )
    };
    let bounds = StageBounds { memory: 8 << 20, ..StageBounds::default() };
    let (outcome, stderr) = run(&grow("unreachable"), &bounds, Stream::null()).await;
    assert_eq!((outcome.status(), outcome.ends_pipeline()), (Status(137), true));
    assert_eq!(stderr, "guest: killed: out of memory (8 MiB)\n");
    let (outcome, _) = run(&grow(""), &bounds, Stream::null()).await;
    assert_eq!(
        outcome,
        CommandOutcome::Exited(Status(0)),
        "a guest that handles the failed growth continues"
    );
    let large = r#"(module (memory (export "memory") 200) (func (export "_start")))"#;
    let (outcome, _) = run(large, &bounds, Stream::null()).await;
    assert_eq!(outcome, CommandOutcome::Killed(KillReason::Memory(8 << 20)));
}

#[tokio::test]
async fn a_trap_is_a_crash() {
    let deep = r#"(module (memory (export "memory") 1) (func $f (export "_start") (call $f)))"#;
    let (outcome, stderr) = run(deep, &StageBounds::default(), Stream::null()).await;
    assert_eq!(outcome.status(), Status(134));
    assert_eq!(stderr, "guest: crashed: its calls are nested too deep\n");
    let outside = r#"(module (memory (export "memory") 1) (func (export "_start") (drop (i32.load (i32.const 65536)))))"#;
    let (outcome, stderr) = run(outside, &StageBounds::default(), Stream::null()).await;
    assert_eq!(outcome.status(), Status(134));
    assert!(stderr.starts_with("guest: crashed: "), "{stderr}");
}

#[tokio::test]
async fn a_module_that_is_not_a_command_is_reported() {
    for (wat, words) in [
        (r#"(module (memory (export "memory") 1))"#, "_start"),
        (r#"(module (import "env" "system" (func)) (func (export "_start")))"#, "system"),
        (r#"(module (func (export "_start") (local i32)))"#, ""),
    ] {
        let (outcome, stderr) = run(wat, &StageBounds::default(), Stream::null()).await;
        if words.is_empty() {
            assert_eq!(
                outcome,
                CommandOutcome::Exited(Status(0)),
                "a guest without a memory runs: {stderr}"
            );
        } else {
            assert_eq!(outcome.status(), Status::CANNOT_RUN);
            assert!(stderr.contains(words), "{stderr}");
        }
    }
}

#[tokio::test]
async fn a_writer_ends_with_its_reader() {
    let (reader, output) = Stream::pipe();
    let (wat, bounds) = (writer(1), StageBounds::default());
    let (ran, ()) = tokio::join!(run(&wat, &bounds, output), async {
        assert!(!reader.read(1000).await.unwrap().is_empty());
        drop(reader);
    });
    assert_eq!(ran, (CommandOutcome::Killed(KillReason::Pipe), String::new()));
    assert_eq!((ran.0.status(), ran.0.ends_pipeline()), (Status(141), false));
}

#[tokio::test]
async fn writing_fails_if_the_files_are_full() {
    let (outcome, stderr) = run(&writer(4), &StageBounds::default(), Stream::null()).await;
    assert_eq!(outcome, CommandOutcome::Exited(Status(51)));
    assert!(stderr.starts_with("guest: no room for `endless`"), "{stderr}");
}

#[tokio::test]
async fn descriptors_are_limited() {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    files.write("f", b"").unwrap();
    let mut script = Script::new();
    let (at, len) = script.text(b"f");
    for _ in 0..3000 {
        script.call("path_open", &[3, 1, at, len, 0, 2, 0, 0, 0]);
    }
    let result = script.run(&files).await;
    assert_eq!(result.answers.iter().filter(|answer| **answer == 0).count(), 1024 - 4);
    assert!(result.answers.iter().skip(1020).all(|answer| *answer == 33));
}

#[tokio::test]
async fn a_stage_ends_when_its_caller_drops_it() {
    for wat in [
        r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#
            .to_owned(),
        writer(1),
    ] {
        let (reader, output) = Stream::pipe();
        let started = Instant::now();
        let ran = tokio::time::timeout(
            Duration::from_millis(500),
            run(&wat, &StageBounds::default(), output),
        )
        .await;
        assert!(ran.is_err());
        // The guest's end of the pipe is closed, so the reader gets the remaining bytes and then
        // reaches the end.
        while !reader.read(1 << 20).await.unwrap().is_empty() {}
        assert!(started.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn no_path_reaches_outside_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret"), work.join("absolute")).unwrap();
    std::os::unix::fs::symlink("../secret", work.join("relative")).unwrap();
    std::os::unix::fs::symlink("..", work.join("parent")).unwrap();
    let files = Arc::new(Files::write_through(Files::open_base(&work).unwrap()));
    let top = dir.path().to_str().unwrap();
    let absolute = format!("{top}/secret");
    let paths = [
        "../secret",
        "absolute",
        "relative",
        "parent/secret",
        "a/../../secret",
        "./../secret",
        &absolute,
        "/proc/self/environ",
        "/etc/passwd",
        "\u{0}/../secret",
    ];
    let mut script = Script::new();
    for path in paths {
        script.open(path, 0, 2, 0);
        script.open(path, 1 | 8, 64, 0);
        let (at, len) = script.text(path.as_bytes());
        script.call("path_filestat_get", &[3, 1, at, len, 512]);
        script.call("path_create_directory", &[3, at, len]);
    }
    let result = script.run(&files).await;
    assert!(result.answers.iter().all(|answer| *answer != 0), "{:?}", result.answers);
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 3);
}
