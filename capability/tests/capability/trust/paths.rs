//! Tests of hostile paths: each path is rejected with the message in its row of
//! `data/hostile/paths.txt`, both in an overlay and in a write-through run, and nothing changes.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wattle_capability::files::{Files, FilesError, OVERLAY_LIMIT, append_line};

/// Creates a folder that contains a workdir and, next to it, a folder outside of the workdir. The
/// workdir contains links to the outside, circular links, protected files and special files.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (work, outside) = (dir.path().join("work"), dir.path().join("outside"));
    for folder in [&work, &outside, &work.join("dir"), &work.join(".git"), &work.join("dir/.Git")] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(outside.join("secret.txt"), "outside").unwrap();
    for file in ["a.txt", ".git/config", "dir/.Git/config", "_steps.jsonl"] {
        std::fs::write(work.join(file), "inside").unwrap();
    }
    for (link, target) in [
        ("out", "../outside"),
        ("out_file", "../outside/secret.txt"),
        ("passwd", "/etc/passwd"),
        ("proc", "/proc/self"),
        ("null", "/dev/null"),
        ("dir/up", "../.."),
        ("circle", "circle"),
        ("ping", "pong"),
        ("pong", "ping"),
        ("repo", ".git"),
        ("trace", "_steps.jsonl"),
        ("far", "dir/up/outside"),
        ("dangling", "../outside/new.txt"),
    ] {
        symlink(target, work.join(link)).unwrap();
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        work.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    dir
}

/// Returns everything below a folder, by path: the content of a file, and the kind of any other
/// entry.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let (path, kind) =
                entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            let what = match kind {
                kind if kind.is_file() => std::fs::read_to_string(&path).unwrap(),
                kind => format!("{kind:?}"),
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, what);
        }
    }
    found
}

fn outcome(files: &Files, parts: &[String]) -> String {
    let path = |at: usize| parts[at].as_str();
    let done: Result<(), FilesError> = match path(0) {
        "read" => files.read(path(1)).map(drop),
        "list" => files.list(path(1)).map(drop),
        "stat" => files.stat(path(1)).map(drop),
        "write" => files.write(path(1), b"x"),
        "append" => files.append(path(1), b"x"),
        "truncate" => files.truncate(path(1), 0),
        "mkdir" => files.mkdir(path(1)),
        "remove" => files.remove(path(1)),
        "remove_all" => files.remove_all(path(1)),
        "move" => files.rename(path(1), path(2)),
        other => panic!("no such operation: {other}"),
    };
    match done {
        Ok(()) => panic!("{parts:?} is not refused"),
        Err(why) => format!("{}: {why}", why.code().name().unwrap()),
    }
}

#[test]
fn hostile_paths_are_refused_and_nothing_outside_is_touched() {
    let dir = place();
    let before = tree(dir.path());
    let base = || Files::open_base(&dir.path().join("work")).unwrap();
    for files in [Files::overlay(Some(base()), OVERLAY_LIMIT), Files::write_through(base())] {
        let rows = super::rows::check("paths.txt", |parts| outcome(&files, parts));
        assert!(rows >= 50, "only {rows} rows were read");
        assert!(files.changes().unwrap().is_empty());
    }
    assert_eq!(tree(dir.path()), before);
}

/// Tests that the host does not append to one of its own files, such as the trace, if the file's
/// path is a link or a special file.
#[test]
fn the_hosts_own_lines_follow_no_link() {
    let dir = place();
    let work = dir.path().join("work");
    for name in ["out_file", "dangling", "null", "trace", "fifo", "dir"] {
        assert!(append_line(&work.join(name), b"{}\n").is_err(), "{name}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("outside/secret.txt")).unwrap(), "outside");
    assert!(!dir.path().join("outside/new.txt").exists());
    for _ in 0..2 {
        append_line(&work.join("new.jsonl"), b"{}\n").unwrap();
    }
    assert_eq!(std::fs::read_to_string(work.join("new.jsonl")).unwrap(), "{}\n{}\n");
}

/// While a run writes to a folder, another thread repeatedly swaps the folder with a link to the
/// outside. Nothing is written outside of the workdir.
#[test]
fn a_folder_that_becomes_a_link_while_it_is_written_to_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (work, outside) = (dir.path().join("work"), dir.path().join("outside"));
    for folder in [&work, &outside, &work.join("real"), &work.join("spare")] {
        std::fs::create_dir(folder).unwrap();
    }
    symlink("../outside", work.join("link")).unwrap();
    let files = Files::write_through(Files::open_base(&work).unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    work.join("real"),
                    rustix::fs::CWD,
                    work.join("link"),
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        let (mut written, mut refused) = (0, 0);
        for round in 0..2_000 {
            match files.write(&format!("real/{}.txt", round % 7), b"x") {
                Ok(()) => written += 1,
                Err(why) => {
                    refused += 1;
                    assert_ne!(why.to_string(), "");
                }
            }
            let _ = files.append("real/log.txt", b"x");
            let _ = files.remove("real/0.txt");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(written + refused, 2_000);
    });
    assert!(tree(&outside).is_empty(), "{:?}", tree(&outside));
}
