//! Tests of links: those that stay in the workdir, those that lead out of it, hard links, links
//! that another process replaces during an operation, and the names under which a guard is asked
//! about a linked file.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::CWD;
use wattle_files::{EntryKind, ErrorKind, Files, OVERLAY_LIMIT, PathGuard};
use wattle_lang::Target;

use super::{SECRET, Yard};
use crate::common::{base, tree};

#[test]
fn links_that_stay_inside_lead_where_they_say() {
    let yard = Yard::new();
    let work = yard.work();
    symlink("real", work.join("to_dir")).unwrap();
    symlink("to_dir/deep/../file", work.join("to_file")).unwrap();
    symlink(work.join("real/deep"), work.join("abs_inside")).unwrap();
    symlink("real/fresh", work.join("dangling")).unwrap();
    for files in yard.runs() {
        assert_eq!(files.read("to_file").unwrap(), "inside");
        assert_eq!(files.read("abs_inside/file").unwrap(), "deep");
        assert_eq!(files.read("to_dir/deep/file").unwrap(), "deep");
        assert_eq!(files.stat("to_dir").unwrap().kind, EntryKind::Folder);
        assert_eq!(files.stat_link("to_dir").unwrap().kind, EntryKind::Link);
        assert_eq!(files.read_link("to_dir").unwrap(), "real");
        files.write("dangling", b"made").unwrap();
        assert_eq!(files.read("real/fresh").unwrap(), "made");
        files.write("to_dir/new", b"n").unwrap();
        assert_eq!(files.read("real/new").unwrap(), "n");
        files.remove("real/file").unwrap();
        assert!(
            files.read("to_file").unwrap_err().is_not_found(),
            "what is removed is gone under each of its names"
        );
        files.remove("to_file").unwrap();
        files.rename("to_dir", "moved_link").unwrap();
        assert_eq!(files.read("moved_link/new").unwrap(), "n");
        files.write("real/file", b"inside").unwrap();
        let changes = files.changes().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        let all = [
            "created moved_link (link)",
            "created real/fresh (4 bytes)",
            "created real/new (1 byte)",
            "deleted to_dir (link)",
            "deleted to_file (link)",
        ];
        assert_eq!(changes, all);
        files.apply().unwrap();
        assert_eq!(std::fs::read_link(work.join("moved_link")).unwrap(), Path::new("real"));
        // Restores the initial state for the next run.
        for gone in ["moved_link", "real/fresh", "real/new"] {
            std::fs::remove_file(work.join(gone)).unwrap();
        }
        symlink("real", work.join("to_dir")).unwrap();
        symlink("to_dir/deep/../file", work.join("to_file")).unwrap();
    }
}

#[test]
fn links_out_can_be_removed_and_moved_but_not_followed() {
    let yard = Yard::new();
    let before = tree(&yard.outside());
    for (files, name) in yard.runs().into_iter().zip(["abs_dir", "rel_dir"]) {
        files.rename(name, "renamed").unwrap();
        assert!(files.read("renamed/secret").unwrap_err().is_escape());
        files.remove_all("renamed").unwrap();
        files.remove_all("real").unwrap();
        files.apply().unwrap();
        assert!(!yard.work().join("real").exists());
        assert_eq!(tree(&yard.outside()), before, "{name}");
        std::fs::create_dir(yard.work().join("real")).unwrap();
        symlink("../../outside", yard.work().join("real/out")).unwrap();
    }
}

#[test]
fn a_file_with_a_name_outside_is_changed_inside_only() {
    for through in [false, true] {
        let yard = Yard::new();
        for name in ["a", "b", "c", "d"] {
            std::fs::hard_link(yard.outside().join("secret"), yard.work().join(name)).unwrap();
        }
        let [overlay, direct] = yard.runs();
        let files = if through { direct } else { overlay };
        files.write("a", b"w").unwrap();
        files.append("b", b"+").unwrap();
        files.write_at("c", 0, b"s").unwrap();
        files.truncate("d", 1).unwrap();
        files.apply().unwrap();
        let read = |name: &str| std::fs::read_to_string(yard.work().join(name)).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(read), ["w", "SENTINEL+", "sENTINEL", "S"]);
        assert_eq!(std::fs::read_to_string(yard.outside().join("secret")).unwrap(), SECRET);
    }
}

#[test]
fn a_link_that_is_exchanged_meanwhile_leads_nowhere() {
    let yard = Yard::new();
    let (work, outside) = (yard.work(), yard.outside());
    std::fs::create_dir(work.join("swap")).unwrap();
    std::fs::write(work.join("swap/secret"), "inside").unwrap();
    symlink(&outside, work.join("swap_out")).unwrap();
    symlink("../outside", work.join("swap_rel")).unwrap();
    std::fs::write(work.join("flip"), "inside").unwrap();
    symlink("../outside/secret", work.join("flip_out")).unwrap();
    let before = tree(&outside);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (work, over) = (&work, &over);
        scope.spawn(move || {
            let exchange = |a: &str, b: &str| {
                let _ = rustix::fs::renameat_with(
                    CWD,
                    work.join(a),
                    CWD,
                    work.join(b),
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            };
            while !over.load(Ordering::Relaxed) {
                exchange("swap", "swap_out");
                exchange("flip", "flip_out");
                exchange("swap", "swap_out");
                exchange("swap", "swap_rel");
                exchange("flip", "flip_out");
                exchange("swap", "swap_rel");
            }
        });
        for round in 0..300 {
            for files in yard.runs() {
                for path in ["swap/secret", "flip"] {
                    if let Ok(data) = files.read(path) {
                        assert_ne!(data, SECRET, "round {round}: {path}");
                    }
                }
                let _ = files.append("flip", b"x");
                let _ = files.write("swap/new", b"x");
                let _ = files.write("swap/secret", b"inside");
                let _ = files.write("flip", b"inside");
                let _ = files.mkdir("swap/folder");
                let _ = files.rename("swap/secret", "swap/moved");
                let _ = files.rename("swap/moved", "swap/secret");
                let _ = files.remove("swap/sub/secret");
                let _ = files.remove_all("swap/sub");
                let _ = files.apply();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(tree(&outside), before);
}

#[test]
fn a_guard_is_asked_about_every_spelling_of_a_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("vault/deep")).unwrap();
    std::fs::write(dir.path().join("vault/deep/t.txt"), "deep").unwrap();
    std::fs::write(dir.path().join("top.txt"), "top").unwrap();
    for (target, link) in [
        ("vault", "open"),
        ("open/deep", "short"),
        ("vault/../open", "round"),
        ("open/../top.txt", "back"),
    ] {
        symlink(target, dir.path().join(link)).unwrap();
    }
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let log = Arc::clone(&asked);
    let guard: PathGuard = Arc::new(move |_: Target, path: &str| {
        log.lock().unwrap().push(path.to_owned());
        if path == "open/new" { Err("denied".to_owned()) } else { Ok(()) }
    });
    for files in [Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), Files::write_through(base(&dir))]
    {
        let files = files.guarded(Arc::clone(&guard));
        for (path, expected) in [
            ("vault/deep/t.txt", &["vault/deep/t.txt"][..]),
            ("open/deep/t.txt", &["open/deep/t.txt", "vault/deep/t.txt"]),
            ("/short/t.txt", &["short/t.txt", "open/deep/t.txt", "vault/deep/t.txt"]),
            ("round/deep/t.txt", &["round/deep/t.txt", "open/deep/t.txt", "vault/deep/t.txt"]),
            ("back", &["back", "open", "top.txt"]),
        ] {
            asked.lock().unwrap().clear();
            files.read(path).unwrap();
            assert_eq!(*asked.lock().unwrap(), expected, "{path}");
        }
        assert_eq!(files.write("open/new", b"x").unwrap_err().kind(), ErrorKind::Denied);
        assert!(files.stat("vault/new").is_err());
    }
}
