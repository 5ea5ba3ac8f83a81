//! Tests paths that try to leave the workdir: each is rejected or stays inside, and a file beside
//! the workdir is never touched. The tests may run as root, for whom permissions have no effect.

mod links;
mod paths;

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use wattle_files::{EntryKind, ErrorKind, Files, OVERLAY_LIMIT};
use wattle_lang::Code;

use crate::common::base;

const SECRET: &str = "SENTINEL";

/// The folder `work` (the base) and, beside it, the folder `outside`, which no run may read or
/// change.
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
