//! Tests with several processes in one workdir: nothing is lost, and a killed process leaves only
//! complete files.

use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::fs::{CWD, RenameFlags};
use wattle_files::{Files, OVERLAY_LIMIT};

use crate::common::tree;

const WORK: &str = "WATTLE_TEST_WORK";
const DIR: &str = "WATTLE_TEST_DIR";
const LINES: usize = 3_000;
const FILES: usize = 60;

/// Starts this test binary in a child process that performs the task `work`.
fn start(work: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "processes::another_process", "--nocapture"])
        .env(WORK, work)
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "is started by the other tests"]
fn another_process() {
    let (Ok(work), Ok(dir)) = (std::env::var(WORK), std::env::var(DIR)) else { return };
    let base = Files::open_base(Path::new(&dir)).unwrap();
    match work.split_once(' ').unwrap_or((&work, "")) {
        ("append", who) => {
            let files = Files::write_through(base);
            for number in 0..LINES {
                files
                    .append(
                        "log.txt",
                        format!("{who} line {number} {}\n", "x".repeat(number % 50)).as_bytes(),
                    )
                    .unwrap();
            }
        }
        ("stream", who) => {
            let files = Files::write_through(base);
            let writer = files.writer("log.txt").unwrap();
            for number in 0..LINES {
                writer
                    .append(format!("{who} line {number} {}\n", "x".repeat(number % 50)).as_bytes())
                    .unwrap();
            }
        }
        ("full", _) => {
            let files = Files::write_through(base);
            files.write("small.txt", b"rain").unwrap();
            let large = [b'x'; 100_000];
            files.write("a.txt", &large).unwrap_err();
            files.append("b.txt", &large).unwrap_err();
            files.write("c.txt", &large).unwrap_err();
            files.writer("small.txt").unwrap().append(&large).unwrap_err();
            // A smaller version fits, and the limit of this crate is no failure of the disk.
            files.write("c.txt", b"snow").unwrap();
            files.writer("c.txt").unwrap().truncate(u64::MAX).unwrap_err();
            assert_eq!(files.take_unwritten(), ["a.txt", "b.txt", "small.txt"]);
            assert!(files.take_unwritten().is_empty());
        }
        ("apply", _) => {
            assert_eq!(base.recovered(), [] as [&str; 0], "nobody else changed anything");
            let files = Files::overlay(Some(base), OVERLAY_LIMIT);
            for number in 0..FILES {
                files.write(&format!("old/{number}.txt"), new(number).as_bytes()).unwrap();
                files.write(&format!("new/{number}.txt"), new(number).as_bytes()).unwrap();
                let _ = files.remove(&format!("gone/{number}.txt"));
            }
            let _ = files.remove_all("tree");
            files.apply().unwrap();
        }
        other => panic!("{other:?}"),
    }
}

fn old(number: usize) -> String {
    format!("old {number} ").repeat(300)
}

fn new(number: usize) -> String {
    format!("new {number} ").repeat(400)
}

#[test]
fn three_processes_append_and_no_line_is_lost() {
    for work in ["append", "stream"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log.txt"), "").unwrap();
        let all: Vec<Child> =
            ["a", "b", "c"].map(|who| start(&format!("{work} {who}"), dir.path())).into();
        for mut child in all {
            assert!(child.wait().unwrap().success());
        }
        let text = std::fs::read_to_string(dir.path().join("log.txt")).unwrap();
        assert_eq!(text.lines().count(), 3 * LINES, "{work}");
        for who in ["a", "b", "c"] {
            let lines = text.lines().filter(|line| line.starts_with(who));
            let whole = lines.enumerate().all(|(number, line)| {
                line == format!("{who} line {number} {}", "x".repeat(number % 50))
            });
            assert!(whole, "{work} {who}: each line is whole, and they are in order");
        }
    }
}

/// While a run writes to a folder, another thread repeatedly swaps the folder with a link to the
/// repository. The repository does not change.
#[test]
fn a_swapper_leads_no_write_into_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path();
    for folder in [".git/hooks", "real/hooks"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    std::fs::write(work.join(".git/config"), "[core]\n").unwrap();
    std::fs::write(work.join("real/config"), "mine\n").unwrap();
    symlink(".git", work.join("link")).unwrap();
    let before = tree(&work.join(".git"));
    let over = AtomicBool::new(false);
    let overlay = Files::overlay(Some(Files::open_base(work).unwrap()), OVERLAY_LIMIT);
    let through = Files::write_through(Files::open_base(work).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = rustix::fs::renameat_with(
                    CWD,
                    work.join("real"),
                    CWD,
                    work.join("link"),
                    RenameFlags::EXCHANGE,
                );
            }
        });
        let mut written = 0;
        for round in 0..2_000 {
            written += usize::from(through.write("real/config", b"evil\n").is_ok());
            let _ = through.append("real/config", b"evil\n");
            let _ = through.write("real/hooks/pre-commit", b"#!/bin/sh\n");
            let _ = through.rename("real/config", "real/hooks/post-commit");
            let _ = through.mkdir("real/hooks/sub");
            let _ = through.remove("real/hooks/post-commit");
            if round % 50 == 0 {
                let _ = overlay.write("real/config", b"evil\n");
                let _ = overlay.write("real/hooks/pre-push", b"evil\n");
                let _ = overlay.apply();
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(written > 0, "what is asked for is done when nobody is in the way");
    });
    let repository =
        [".git", "link", "real"].map(|name| work.join(name)).into_iter().find(|path| {
            path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
                && path.join("hooks").exists()
                && path.ends_with(".git")
        });
    assert_eq!(tree(&repository.unwrap()), before);
}

#[test]
fn a_process_that_is_killed_while_it_carries_changes_out_leaves_whole_files_and_no_others() {
    // Measures how long the task takes on this machine if it is not killed.
    let whole = workdir();
    let began = Instant::now();
    assert!(start("apply", whole.path()).wait().unwrap().success());
    let whole = began.elapsed();
    let mut killed = 0;
    for round in 0..16_u32 {
        let dir = workdir();
        // The second process completes the changes of the first.
        for part in 0..2 {
            let mut child = start("apply", dir.path());
            if round % 2 == 0 {
                std::thread::sleep(whole * (1 + (round * 13 + part * 29) % 24) / 24);
            } else {
                // Waits until the task has written its records. The task then starts to move
                // entries.
                while !has_records(dir.path()) && child.try_wait().unwrap().is_none() {
                    std::thread::yield_now();
                }
                std::thread::sleep(whole * (round / 2) / 64);
            }
            let _ = child.kill();
            let ended = child.wait().unwrap();
            assert!(ended.success() || ended.signal().is_some(), "round {round}: {ended}");
            killed += u32::from(!ended.success());
        }
        let recovered = Files::open_base(dir.path()).unwrap();
        assert_eq!(recovered.recovered(), [] as [&str; 0], "nobody else changed anything");
        let after = tree(dir.path());
        assert!(!after.keys().any(|name| name.contains(".wattle")), "{:?}", after.keys());
        for number in 0..FILES {
            let read = |path: String| std::fs::read_to_string(dir.path().join(path));
            let now = read(format!("old/{number}.txt")).unwrap();
            assert!(now == old(number) || now == new(number), "round {round}: {number} is torn");
            assert!(read(format!("new/{number}.txt")).map_or(true, |now| now == new(number)));
            assert!(read(format!("gone/{number}.txt")).map_or(true, |now| now == old(number)));
        }
        let in_tree = after
            .keys()
            .filter(|name| name.starts_with("tree/deep/") && name.ends_with(".txt"))
            .count();
        assert!(
            in_tree == 0 || in_tree == FILES,
            "round {round}: a folder goes as a whole, not {in_tree} files"
        );
        // The first pass completes the changes. The second has nothing left to change.
        for _ in 0..2 {
            assert!(start("apply", dir.path()).wait().unwrap().success());
            let done = tree(dir.path());
            assert_eq!(done.len(), 3 + 2 * FILES, "round {round}: {:?}", done.keys());
            for number in 0..FILES {
                for folder in ["old", "new"] {
                    let now =
                        std::fs::read_to_string(dir.path().join(format!("{folder}/{number}.txt")))
                            .unwrap();
                    assert!(now == new(number), "round {round}: {folder}/{number}.txt");
                }
            }
        }
    }
    assert!(killed > 0, "none was killed in its work");
}

#[test]
fn the_changes_that_the_disk_refuses_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let command = "trap '' XFSZ; ulimit -f 16; exec \"$0\" --ignored --exact \
                   processes::another_process";
    let done = Command::new("sh")
        .args(["-c", command])
        .arg(std::env::current_exe().unwrap())
        .envs([(WORK, "full".as_ref()), (DIR, dir.path().as_os_str())])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn a_workdir_that_was_removed_renamed_or_replaced_is_not_changed_any_longer() {
    for replaced in [false, true] {
        let top = tempfile::tempdir().unwrap();
        let (work, moved) = (top.path().join("work"), top.path().join("moved"));
        std::fs::create_dir(&work).unwrap();
        let files = Files::write_through(Files::open_base(&work).unwrap());
        files.write("a.txt", b"rain").unwrap();
        files.check_workdir().unwrap();
        std::fs::rename(&work, &moved).unwrap();
        if replaced {
            std::fs::create_dir(&work).unwrap();
        }
        for failed in [
            files.check_workdir(),
            files.write("b.txt", b"snow"),
            files.append("a.txt", b"snow"),
            files.remove("a.txt"),
            files.rename("a.txt", "b.txt"),
        ] {
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("was removed, renamed or replaced while"), "{error}");
        }
        assert_eq!(tree(&moved).len(), 1);
        std::fs::remove_dir(&work).ok();
        std::fs::rename(&moved, &work).unwrap();
        files.write("a.txt", b"snow").unwrap();
    }
}

fn workdir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["old", "new", "gone", "tree/deep"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    for number in 0..FILES {
        for folder in ["old", "gone", "tree/deep"] {
            std::fs::write(dir.path().join(format!("{folder}/{number}.txt")), old(number)).unwrap();
        }
    }
    dir
}

/// Returns true if a process has written its records to a staging folder in `dir`.
fn has_records(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    entries.into_iter().any(|entry| {
        entry.file_name().to_string_lossy().starts_with(".wattle-tmp")
            && entry.path().join("plan").exists()
    })
}
