//! Tests of paths that lead out of the workdir or into the system's folders, and of paths that look
//! special but are not.

use wattle_files::{ErrorKind, FilesError};
use wattle_lang::Code;

use super::Yard;
use crate::common::tree;

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
