//! Tests of open files, new links, modification times, and the creation of entries at paths that
//! must be unused, in all types of run.

use std::time::{Duration, SystemTime};

use wattle_files::{ChangeKind, EntryKind, ErrorKind, Files, FilesError, OVERLAY_LIMIT};

use crate::common::{base, kinds, names};

/// Runs a test once for each type of run. The files contain `old.txt` ("old") and the folder `dir`.
fn each(test: impl Fn(&Files, &str)) {
    for kind in ["memory", "overlay", "through"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        std::fs::write(dir.path().join("old.txt"), "old").unwrap();
        let files = match kind {
            "memory" => Files::overlay(None, OVERLAY_LIMIT),
            "overlay" => Files::overlay(Some(base(&dir)), OVERLAY_LIMIT),
            _ => Files::write_through(base(&dir)),
        };
        if kind == "memory" {
            files.mkdir("dir").unwrap();
            files.write("old.txt", b"old").unwrap();
        }
        assert_eq!(files.is_memory(), kind == "memory");
        test(&files, kind);
    }
}

fn kind(result: Result<(), FilesError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn a_writer_follows_its_file() {
    each(|files, run| {
        let writer = files.writer("old.txt").unwrap();
        assert_eq!(writer.append(b"er").unwrap(), 5, "{run}");
        writer.write_at(7, b"!").unwrap();
        assert_eq!(files.read("old.txt").unwrap(), "older\0\0!", "{run}");
        files.rename("old.txt", "dir/new.txt").unwrap();
        writer.truncate(3).unwrap();
        assert_eq!(files.read("dir/new.txt").unwrap(), "old", "{run}");
        files.rename("dir", "folder").unwrap();
        writer.append(b"est").unwrap();
        assert_eq!(files.read("folder/new.txt").unwrap(), "oldest", "{run}");
        files.remove_all("folder").unwrap();
        writer.append(b"?").unwrap();
        files.write("old.txt", b"another").unwrap();
        writer.append(b"?").unwrap();
        assert_eq!(files.read("old.txt").unwrap(), "another", "{run}");
        assert_eq!(names(files, "/"), ["old.txt"], "{run}");
    });
}

#[test]
fn a_writer_needs_an_existing_file() {
    each(|files, run| {
        for (path, expected) in [
            ("none", ErrorKind::NotFound),
            ("dir", ErrorKind::IsFolder),
            ("../x", ErrorKind::Escape),
        ] {
            assert_eq!(files.writer(path).unwrap_err().kind(), expected, "{run} {path}");
        }
    });
}

#[test]
fn writes_to_a_replaced_file_are_discarded() {
    each(|files, run| {
        files.write("new.txt", b"new").unwrap();
        let writer = files.writer("old.txt").unwrap();
        files.rename("new.txt", "old.txt").unwrap();
        writer.append(b"lost").unwrap();
        assert_eq!(files.read("old.txt").unwrap(), "new", "{run}");
    });
}

#[test]
fn create_new_refuses_existing_entries() {
    each(|files, run| {
        files.symlink("nowhere", "dangling").unwrap();
        for path in ["old.txt", "dir", "/", "dangling"] {
            assert_eq!(kind(files.create_new(path)), Some(ErrorKind::Exists), "{run} {path}");
            assert_eq!(kind(files.create_folder(path)), Some(ErrorKind::Exists), "{run} {path}");
        }
        for (path, expected) in [
            ("none/x", ErrorKind::NotFound),
            ("old.txt/x", ErrorKind::NotFolder),
            ("../x", ErrorKind::Escape),
        ] {
            assert_eq!(kind(files.create_new(path)), Some(expected), "{run} {path}");
            assert_eq!(kind(files.create_folder(path)), Some(expected), "{run} {path}");
        }
        assert_eq!(kind(files.create_new("x/")), Some(ErrorKind::IsFolder), "{run}");
        files.create_folder("dir/x/").unwrap();
        files.create_new("dir/x/y").unwrap();
        assert_eq!(
            (names(files, "dir"), files.read("dir/x/y").unwrap().len()),
            (vec!["x/".to_owned()], 0),
            "{run}"
        );
    });
}

#[test]
fn links_lead_where_they_say_and_never_out() {
    each(|files, run| {
        files.symlink("/old.txt", "dir/a").unwrap();
        files.symlink("../dir/./a", "dir/b").unwrap();
        files.symlink("..", "dir/up").unwrap();
        assert_eq!(files.read_link("dir/a").unwrap(), "../old.txt", "{run}");
        assert_eq!(files.read("dir/up/dir/b").unwrap(), "old", "{run}");
        assert_eq!(files.real_path("dir/up/dir/b").unwrap(), "/old.txt", "{run}");
        assert_eq!(files.real_path("dir/none/").unwrap(), "/dir/none", "{run}");
        for target in ["../..", "../../old.txt", "a/../../../x", "/.."] {
            assert_eq!(
                kind(files.symlink(target, "dir/c")),
                Some(ErrorKind::Escape),
                "{run} {target}"
            );
        }
        // The resolved path of the link is in the root, so its target `..` leads out of the
        // workdir.
        assert_eq!(kind(files.symlink("..", "dir/up/c")), Some(ErrorKind::Escape), "{run}");
        assert_eq!(kind(files.symlink("x", "old.txt")), Some(ErrorKind::Exists), "{run}");
        assert_eq!(kind(files.symlink("x", "_steps.jsonl")), Some(ErrorKind::Denied), "{run}");
        assert_eq!(files.stat_link("dir/a").unwrap().kind, EntryKind::Link, "{run}");
    });
}

#[test]
fn a_link_is_not_moved_to_a_path_from_which_it_leads_out() {
    each(|files, run| {
        files.mkdir("dir/deep").unwrap();
        files.symlink("../../old.txt", "dir/deep/link").unwrap();
        files.symlink("deep", "dir/inner").unwrap();
        for (from, to) in
            [("dir/deep/link", "dir/link"), ("dir/deep", "deep"), ("dir/deep/link", "link")]
        {
            let words = "write blocked: the link `dir/deep/link` would lead out of your working \
                         dir; remove it first";
            assert_eq!(files.rename(from, to).unwrap_err().to_string(), words, "{run} {from} {to}");
        }
        files.mkdir("a/b").unwrap();
        files.rename("dir/deep", "a/b/deep").unwrap();
        files.rename("dir/inner", "inner").unwrap();
        assert_eq!(names(files, "/"), ["a/", "dir/", "inner@", "old.txt"], "{run}");
    });
}

#[test]
fn links_are_applied_to_the_base() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.write("a/file", b"text").unwrap();
    files.symlink("/a/file", "b/link").unwrap();
    let created = ChangeKind::Created;
    assert_eq!(
        kinds(&files.apply().unwrap()),
        [("a", created), ("a/file", created), ("b", created), ("b/link", created)]
    );
    assert_eq!(std::fs::read_link(dir.path().join("b/link")).unwrap().to_str(), Some("../a/file"));
    assert_eq!(std::fs::read_to_string(dir.path().join("b/link")).unwrap(), "text");
}

#[test]
fn times_are_set_and_are_not_changes() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    each(|files, run| {
        files.set_modified("old.txt", time).unwrap();
        assert_eq!(files.stat("old.txt").unwrap().modified, Some(time), "{run}");
        files.set_modified("dir", time).unwrap();
        assert_eq!(kind(files.set_modified("none", time)), Some(ErrorKind::NotFound), "{run}");
        if run != "memory" {
            assert_eq!(files.changes().unwrap(), [], "{run}");
        }
    });
}
