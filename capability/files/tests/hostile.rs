//! Tests paths that try to leave the workdir: each is rejected or stays inside, and a file beside
//! the workdir is never touched. The tests may run as root, for whom permissions have no effect.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{base, tree};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use wattle_files::{EntryKind, ErrorKind, Files, FilesError, OVERLAY_LIMIT, PathGuard};
use wattle_lang::{Code, Target};

const SECRET: &str = "SENTINEL";

/// The folder `work` (the base) beside the folder `outside`, which no run may read or change.
struct Yard {
    dir: tempfile::TempDir,
}

impl Yard {
    fn new() -> Yard {
        let yard = Yard { dir: tempfile::tempdir().unwrap() };
        let (work, outside) = (yard.work(), yard.outside());
        std::fs::create_dir_all(work.join("real/deep")).unwrap();
        std::fs::create_dir_all(outside.join("sub")).unwrap();
        std::fs::write(outside.join("secret"), SECRET).unwrap();
        std::fs::write(outside.join("sub/secret"), SECRET).unwrap();
        std::fs::write(work.join("real/file"), "inside").unwrap();
        std::fs::write(work.join("real/deep/file"), "deep").unwrap();
        let links: [(&str, &Path); 22] = [
            ("abs_file", &outside.join("secret")),
            ("abs_dir", &outside),
            ("rel_file", Path::new("../outside/secret")),
            ("rel_dir", Path::new("../outside")),
            ("up", Path::new("..")),
            ("far_up", Path::new("../../../../../../../../../../../..")),
            ("root", Path::new("/")),
            ("proc_root", Path::new("/proc/self/root")),
            ("proc_cwd", Path::new("/proc/self/cwd")),
            ("etc", Path::new("/etc")),
            ("dev_null", Path::new("/dev/null")),
            ("chain1", Path::new("chain2")),
            ("chain2", Path::new("real/deep/chain3")),
            ("real/deep/chain3", Path::new("../../rel_dir/secret")),
            ("loop_a", Path::new("loop_b")),
            ("loop_b", Path::new("loop_a")),
            ("self", Path::new("self")),
            ("dangling_out", Path::new("../outside/new")),
            ("in_then_out", Path::new("real/../../outside/secret")),
            ("sneak", &work.join("../outside/secret")),
            ("real/out", Path::new("../../outside")),
            ("hop", Path::new("real/out/secret")),
        ];
        for (link, target) in links {
            symlink(target, work.join(link)).unwrap();
        }
        yard
    }

    fn work(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    fn outside(&self) -> std::path::PathBuf {
        self.dir.path().join("outside")
    }

    fn runs(&self) -> [Files; 2] {
        let open = || Files::open_base(&self.work()).unwrap();
        [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())]
    }
}

#[test]
fn nothing_outside_is_read_or_written() {
    const ESCAPES: &[&str] = &[
        "..",
        "../",
        "../outside/secret",
        "/../outside/secret",
        "./../outside/secret",
        "real/../../outside/secret",
        "real/deep/../../../outside/secret",
        "//..//outside/secret",
        "real/./../.././outside/secret",
        "../../../../../../../../etc/passwd",
        "../work/real/file",
        "nowhere/../../outside/secret",
        "abs_file",
        "abs_dir/secret",
        "abs_dir/sub/secret",
        "abs_dir/new",
        "abs_dir/../secret/x/../../..",
        "rel_file",
        "rel_dir/secret",
        "rel_dir/sub/../secret/../../../x",
        "rel_dir/sub/new",
        "up/outside/secret",
        "up/work/real/file",
        "far_up/etc/passwd",
        "root/etc/passwd",
        "proc_root/etc/passwd",
        "proc_cwd/Cargo.toml",
        "etc/passwd",
        "etc/new",
        "dev_null",
        "chain1",
        "chain2",
        "real/deep/chain3",
        "dangling_out",
        "in_then_out",
        "sneak",
        "hop",
        "real/out/secret",
        "real/deep/../out/secret",
        "real/out/sub/new/deeper",
    ];
    for (number, path) in ESCAPES.iter().enumerate() {
        let yard = Yard::new();
        let before = (tree(&yard.outside()), tree(&yard.work()));
        for files in yard.runs() {
            let read = |error: FilesError, what: &str| {
                let text = error.to_string();
                assert!(
                    text.starts_with(path)
                        && text.ends_with("outside the run's folder; only files in it can be read"),
                    "{number} {path} {what}: {text}"
                );
                assert_eq!(error.code(), Code::EACCESS, "{path} {what}");
            };
            let write = |result: Result<(), FilesError>, what: &str| {
                let error = result.expect_err(what);
                let text = error.to_string();
                assert!(
                    text.starts_with(path)
                        && text
                            .ends_with("outside the run's folder; only files in it can be written"),
                    "{number} {path} {what}: {text}"
                );
                assert_eq!(error.code(), Code::EACCESS, "{path} {what}");
            };
            read(files.read(path).unwrap_err(), "read");
            read(files.read_at(path, 0, 10).unwrap_err(), "read_at");
            read(files.list(path).unwrap_err(), "list");
            read(files.stat(path).unwrap_err(), "stat");
            write(files.write(path, b"x"), "write");
            write(files.append(path, b"x"), "append");
            write(files.write_at(path, 1, b"x"), "write_at");
            write(files.truncate(path, 0), "truncate");
            write(files.mkdir(path), "mkdir");
            write(files.mkdir(&format!("{path}/new")), "mkdir below");
            write(files.write(&format!("{path}/new"), b"x"), "write below");
            write(files.remove(&format!("{path}/secret")), "remove below");
            write(files.remove_all(&format!("{path}/sub")), "remove_all below");
            write(files.rename("real/file", &format!("{path}/moved")), "rename to");
            write(files.rename(&format!("{path}/secret"), "stolen"), "rename from");
            assert_eq!(files.changes().unwrap(), [], "{path}");
        }
        assert_eq!((tree(&yard.outside()), tree(&yard.work())), before, "{path}");
    }
    assert!(ESCAPES.len() >= 40);
}

#[test]
fn unusual_paths_inside_are_used_literally() {
    let yard = Yard::new();
    for files in yard.runs() {
        // None of these paths has a special meaning, such as a home folder, a URL, a device, or a
        // path of another operating system.
        for path in [
            "~/.ssh/id",
            "file:///etc/passwd",
            "C:\\x",
            "..\\x",
            "...",
            "a%2f..%2fb",
            "/hosts",
            "/tmp/proc/self/root",
            "//var/hosts",
            "%00",
            " ",
            "-rf",
            "*",
        ] {
            assert!(files.read(path).unwrap_err().is_not_found(), "{path:?}");
            files.write(path, b"mine").unwrap();
            assert_eq!(files.read(path).unwrap(), "mine", "{path:?}");
        }
        for (path, kind) in [
            ("", ErrorKind::BadPath),
            ("\0", ErrorKind::BadPath),
            ("real/file\0.txt", ErrorKind::BadPath),
            (&"x".repeat(256), ErrorKind::PathTooLong),
            (&"ü".repeat(128), ErrorKind::PathTooLong),
            (&"d/".repeat(300), ErrorKind::PathTooLong),
            (&"long-name/".repeat(500_000), ErrorKind::PathTooLong),
            ("loop_a", ErrorKind::LinkLoop),
            ("loop_b/x", ErrorKind::LinkLoop),
            ("self", ErrorKind::LinkLoop),
            ("self/self/self", ErrorKind::LinkLoop),
        ] {
            for result in [files.read(path).map(drop), files.write(path, b"x"), files.mkdir(path)] {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), kind, "{:.30}", path);
                assert!(error.to_string().len() < 500, "{:.30}", path);
            }
        }
    }
}

/// Tests that absolute paths into the system's folders are rejected, unless the workdir has the
/// folder.
#[test]
fn folders_of_the_system_are_outside() {
    let yard = Yard::new();
    let refused = |result: Result<(), FilesError>, path: &str, done: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::EACCESS, "{path}");
        assert_eq!(
            error.to_string(),
            format!("{path} is outside the run's folder; only files in it can be {done}")
        );
    };
    for files in yard.runs() {
        for path in ["/var/log/x", "/usr", "/./var/../proc/1", "/dev/sda", "/sys/kernel"] {
            refused(files.read(path).map(drop), path, "read");
            refused(files.stat_link(path).map(drop), path, "read");
            refused(files.list(path).map(drop), path, "read");
            refused(files.write(path, b"x"), path, "written");
            refused(files.mkdir(path), path, "written");
            refused(files.rename("real/file", path), path, "written");
            refused(files.check_inside(path, false), path, "read");
        }
        // These folder names are also common in workdirs, so only reading is rejected, until the
        // folder exists.
        for path in ["/home/ada/x", "/lib/x", "/bin/x", "/opt/x"] {
            refused(files.read(path).map(drop), path, "read");
            files.write(path, b"mine").unwrap();
            assert_eq!(files.read(path).unwrap(), "mine");
        }
        files.mkdir("usr/share").unwrap();
        files.write("/usr/share/x", b"mine").unwrap();
        assert_eq!(files.read("/usr/share/x").unwrap(), "mine");
        assert!(files.read("/usr/none").unwrap_err().is_not_found());
        assert!(files.read("sbin/none").unwrap_err().is_not_found());

        let rooted = files.rooted();
        rooted.write("/boot/x", b"mine").unwrap();
        assert!(rooted.read("/sys/x").unwrap_err().is_not_found());
        refused(rooted.check_inside("/sys/x", true), "/sys/x", "written");
        rooted.check_inside("/boot/y", false).unwrap();
        rooted.check_inside("/etcetera", false).unwrap();
    }
}

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
fn devices_fifos_and_sockets_are_never_opened() {
    let yard = Yard::new();
    let work = yard.work();
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, work.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    symlink("fifo", work.join("to_fifo")).unwrap();
    let mut names = vec!["fifo", "socket", "to_fifo"];
    // Only root can create a device. 1:5 is `/dev/zero`.
    if mknodat(CWD, work.join("zero"), FileType::CharacterDevice, mode, rustix::fs::makedev(1, 5))
        .is_ok()
    {
        names.push("zero");
    }
    for files in yard.runs() {
        for name in &names {
            for result in [
                files.read(name).map(drop),
                files.write(name, b"x"),
                files.append(name, b"x"),
                files.truncate(name, 0),
                files.mkdir(name),
                files.list(name).map(drop),
                files.write(&format!("{name}/x"), b"x"),
                files
                    .rename("real/file", name)
                    .and_then(|()| files.rename(name, "real/file"))
                    .and(files.read("fifo").map(drop)),
            ] {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind(), error.code()),
                    (ErrorKind::Special, Code::EACCESS),
                    "{name}: {error}"
                );
            }
        }
        assert!(files.rename("fifo", "x").is_err());
        let list = files.list("/").unwrap();
        assert_eq!(list.iter().find(|entry| entry.name == "fifo").unwrap().kind, EntryKind::Other);
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
fn deep_trees_are_refused_and_do_not_grow_past_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    for files in [Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), Files::write_through(base(&dir))]
    {
        let deep = vec!["d"; 200].join("/");
        files.mkdir(&format!("a/{deep}")).unwrap();
        files.mkdir(&format!("b/{deep}")).unwrap();
        assert_eq!(
            files.rename("a", &format!("b/{deep}/a")).unwrap_err().kind(),
            ErrorKind::PathTooLong
        );
        assert_eq!(files.stat(&format!("a/{deep}")).unwrap().kind, EntryKind::Folder);
        files.remove_all("a").unwrap();
        files.remove_all("b").unwrap();
    }
    // A tree on disk that is deeper than the path limit causes clear errors and no stack overflow.
    let mut at = dir.path().join("deep");
    for _ in 0..400 {
        at.push("d");
    }
    std::fs::create_dir_all(&at).unwrap();
    for files in [Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), Files::write_through(base(&dir))]
    {
        for result in [files.remove_all("deep"), files.rename("deep", "moved")] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::PathTooLong);
        }
    }
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
