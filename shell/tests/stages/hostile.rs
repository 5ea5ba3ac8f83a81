//! Guests that mean harm, or go wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{Command, CommandOutcome, KillReason, StageBounds, Status, Stream};

use crate::guest::{Echo, Script, toolbox};

/// What a guest came to, and what was said of it.
async fn run(wat: &str, bounds: &StageBounds, stdout: Stream) -> (CommandOutcome, String) {
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let (errors, complaints) = Stream::capture(1 << 16);
    let fds = vec![(0, Stream::null()), (1, stdout), (2, errors)];
    let command = Command { argv: vec!["/bin/guest".to_owned()], env: Vec::new(), cwd: "/".to_owned(), fds };
    let ended = toolbox(wat).run(command, &files, Arc::new(Echo), bounds).await;
    (ended, String::from_utf8_lossy(&complaints.take()).into_owned())
}

/// Writes 64 KiB to a descriptor again and again, until that fails; ends with the error number.
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
async fn a_loop_without_end_uses_up_its_time() {
    let wat = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;
    let bounds = StageBounds { time: Duration::from_millis(100), ..StageBounds::default() };
    let (ended, said) = run(wat, &bounds, Stream::null()).await;
    assert_eq!(ended, CommandOutcome::Killed(KillReason::Time(bounds.time)));
    assert_eq!((ended.status(), ended.ends_pipeline()), (Status(152), true));
    assert_eq!(said, "guest: killed: used up its 0.1 s of processor time\n");
}

#[tokio::test]
async fn waiting_uses_up_no_time() {
    let mut script = Script::new();
    script.bounds.time = Duration::from_millis(60);
    let mut clock = vec![0; 48];
    clock[24..32].copy_from_slice(&200_000_000u64.to_le_bytes());
    let (clock, _) = script.text(&clock);
    script.call("poll_oneoff", &[clock, 1024, 1, 0]);
    let told = script.run(&Arc::new(Files::overlay(None, OVERLAY_LIMIT))).await;
    assert_eq!((told.ended, told.answers), (CommandOutcome::Exited(Status(0)), vec![0]));
}

#[tokio::test]
async fn memory_is_bounded() {
    let grow = |then: &str| {
        format!(
            r#"(module (memory (export "memory") 1) (func (export "_start")
            (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) {then}))"#
        )
    };
    let bounds = StageBounds { memory: 8 << 20, ..StageBounds::default() };
    let (ended, said) = run(&grow("unreachable"), &bounds, Stream::null()).await;
    assert_eq!((ended.status(), ended.ends_pipeline()), (Status(137), true));
    assert_eq!(said, "guest: killed: out of memory (8 MiB)\n");
    let (ended, _) = run(&grow(""), &bounds, Stream::null()).await;
    assert_eq!(ended, CommandOutcome::Exited(Status(0)), "who makes do with what there is goes on");
    let large = r#"(module (memory (export "memory") 200) (func (export "_start")))"#;
    let (ended, _) = run(large, &bounds, Stream::null()).await;
    assert_eq!(ended, CommandOutcome::Killed(KillReason::Memory(8 << 20)));
}

#[tokio::test]
async fn what_cannot_go_on_crashes() {
    let deep = r#"(module (memory (export "memory") 1) (func $f (export "_start") (call $f)))"#;
    let (ended, said) = run(deep, &StageBounds::default(), Stream::null()).await;
    assert_eq!(ended.status(), Status(134));
    assert_eq!(said, "guest: crashed: its calls are nested too deep\n");
    let outside =
        r#"(module (memory (export "memory") 1) (func (export "_start") (drop (i32.load (i32.const 65536)))))"#;
    let (ended, said) = run(outside, &StageBounds::default(), Stream::null()).await;
    assert_eq!(ended.status(), Status(134));
    assert!(said.starts_with("guest: crashed: "), "{said}");
}

#[tokio::test]
async fn what_is_no_command_is_told() {
    for (wat, words) in [
        (r#"(module (memory (export "memory") 1))"#, "_start"),
        (r#"(module (import "env" "system" (func)) (func (export "_start")))"#, "system"),
        (r#"(module (func (export "_start") (local i32)))"#, ""),
    ] {
        let (ended, said) = run(wat, &StageBounds::default(), Stream::null()).await;
        if words.is_empty() {
            assert_eq!(ended, CommandOutcome::Exited(Status(0)), "a guest needs no memory: {said}");
        } else {
            assert_eq!(ended.status(), Status::CANNOT_RUN);
            assert!(said.contains(words), "{said}");
        }
    }
}

#[tokio::test]
async fn writing_ends_with_its_reader() {
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
async fn writing_ends_where_the_files_are_full() {
    let (ended, said) = run(&writer(4), &StageBounds::default(), Stream::null()).await;
    assert_eq!(ended, CommandOutcome::Exited(Status(51)));
    assert!(said.starts_with("guest: no room for `endless`"), "{said}");
}

#[tokio::test]
async fn descriptors_are_bounded() {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    files.write("f", b"").unwrap();
    let mut script = Script::new();
    let (at, len) = script.text(b"f");
    for _ in 0..3000 {
        script.call("path_open", &[3, 1, at, len, 0, 2, 0, 0, 0]);
    }
    let told = script.run(&files).await;
    assert_eq!(told.answers.iter().filter(|answer| **answer == 0).count(), 1024 - 4);
    assert!(told.answers.iter().skip(1020).all(|answer| *answer == 33));
}

#[tokio::test]
async fn a_stage_ends_with_who_waits_for_it() {
    for wat in
        [r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#.to_owned(), writer(1)]
    {
        let (reader, output) = Stream::pipe();
        let started = Instant::now();
        let ran = tokio::time::timeout(Duration::from_millis(500), run(&wat, &StageBounds::default(), output)).await;
        assert!(ran.is_err());
        // Its end of the pipe is closed: what is left can be read, and then there is no more.
        while !reader.read(1 << 20).await.unwrap().is_empty() {}
        assert!(started.elapsed() < Duration::from_secs(4));
    }
}

#[tokio::test]
async fn nothing_outside_is_reached() {
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
    let told = script.run(&files).await;
    assert!(told.answers.iter().all(|answer| *answer != 0), "{:?}", told.answers);
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 3);
}
