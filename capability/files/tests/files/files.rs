//! Tests of reads, writes, moves and removals, with a base and without one.

use wattle_files::{
    ChangeKind, EntryKind, ErrorKind, Files, FilesError, OVERLAY_LIMIT, READ_LIMIT,
};
use wattle_lang::Code;

use crate::common::{Tree, base, kinds, names, tree};

/// Runs a test once for each type of run.
fn each(test: impl Fn(&Files, &str)) {
    test(&Files::overlay(None, OVERLAY_LIMIT), "memory");
    let dir = tempfile::tempdir().unwrap();
    test(&Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), "overlay");
    assert_eq!(tree(dir.path()), Tree::new(), "an overlay does not write to its base");
    test(&Files::write_through(base(&dir)), "write-through");
}

fn changes(files: &Files) -> Vec<String> {
    files.changes().unwrap().iter().map(ToString::to_string).collect()
}

/// Creates a base with `a/x/1`, `a/2` and `keep`.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("a/x")).unwrap();
    std::fs::write(dir.path().join("a/x/1"), "1").unwrap();
    std::fs::write(dir.path().join("a/2"), "22").unwrap();
    std::fs::write(dir.path().join("keep"), "keep").unwrap();
    dir
}

#[test]
fn files_are_written_read_and_listed() {
    each(|files, kind| {
        files.write("/a/b/c.txt", b"one").unwrap();
        files.append("a/b/c.txt", b" two").unwrap();
        files.append("a/new.log", b"line").unwrap();
        files.write("./a/../top.txt", b"").unwrap();
        assert_eq!(files.read("a//b/./c.txt").unwrap(), "one two", "{kind}");
        assert_eq!(files.read("/top.txt").unwrap(), "", "{kind}");
        assert_eq!(names(files, "/"), ["a/", "top.txt"], "{kind}");
        assert_eq!(names(files, "a"), ["b/", "new.log"], "{kind}");
        assert_eq!(files.list("a").unwrap()[1].size, 4, "{kind}");
        let stat = files.stat("a/b/c.txt").unwrap();
        assert_eq!((stat.kind, stat.size), (EntryKind::File, 7), "{kind}");
        assert!(stat.modified.is_some(), "{kind}");
        assert_eq!(files.stat(".").unwrap().kind, EntryKind::Folder, "{kind}");
        let all = [
            "created a/",
            "created a/b/",
            "created a/b/c.txt (7 bytes)",
            "created a/new.log (4 bytes)",
        ];
        assert_eq!(changes(files)[..4], all, "{kind}");
        assert_eq!(changes(files)[4..], ["created top.txt (0 bytes)"], "{kind}");
    });
}

#[test]
fn parts_of_files_are_read_and_written() {
    each(|files, kind| {
        files.write_at("f", 4, b"data").unwrap();
        assert_eq!(files.read("f").unwrap(), "\0\0\0\0data", "{kind}");
        files.write_at("f", 0, b"head").unwrap();
        files.write_at("f", 100, b"").unwrap();
        assert_eq!(files.read_at("f", 2, 4).unwrap(), "adda", "{kind}");
        assert_eq!(files.read_at("f", 6, 100).unwrap(), "ta", "{kind}");
        assert_eq!(files.read_at("f", 8, 1).unwrap(), "", "{kind}");
        assert_eq!(files.read_at("f", u64::MAX, u64::MAX).unwrap(), "", "{kind}");
        files.truncate("f", 3).unwrap();
        files.truncate("f", 5).unwrap();
        assert_eq!(files.read("f").unwrap(), "hea\0\0", "{kind}");
        let reader = files.open("f").unwrap();
        files.write("f", b"other").unwrap();
        files.remove("f").unwrap();
        assert_eq!(
            (reader.size(), reader.read_at(0, 3).unwrap()),
            (5, "hea".into()),
            "{kind}: a reader keeps its file"
        );
        assert_eq!(files.truncate("f", 0).unwrap_err().kind(), ErrorKind::NotFound, "{kind}");
        for edit in [files.write_at("f", u64::MAX, b"x"), files.write_at("f", 1 << 50, b"x")] {
            let code = edit.unwrap_err().code();
            assert!(code == Code::ENOMEM || code == Code::EBOUND, "{kind}: {code}");
        }
        assert_eq!(changes(files), [""; 0], "{kind}: written and removed is no change");
    });
}

#[test]
fn invalid_operations_are_refused_with_reasons() {
    each(|files, kind| {
        files.write("d/readme.md", b"x").unwrap();
        files.write("d/notes.txt", b"x").unwrap();
        files.mkdir("empty").unwrap();
        let fails = |result: Result<(), FilesError>, code: Code, text: &str| {
            let error = result.unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (code, text), "{kind}");
        };
        let read = |path: &str| files.read(path).map(drop);
        let (enoent, eexist, eaccess) = (Code::ENOENT, Code::EEXIST, Code::EACCESS);
        let ekind = Code::EKIND;
        let not_empty =
            "the folder `d` is not empty, it has: notes.txt, readme.md; remove what it holds first";
        let taken = "`d/readme.md` is already a file; remove it first, or use another name";
        let below = "`d/readme.md` is a file, not a folder";
        fails(
            read("d/note"),
            enoent,
            "no such file or folder `d/note`; the folder `d` has: notes.txt, readme.md",
        );
        let far = "no such file or folder `x/y`: its folder does not exist; the nearest existing \
                   folder `/` has: d/, empty/";
        fails(read("x/y"), enoent, far);
        fails(
            read("empty/f"),
            enoent,
            "no such file or folder `empty/f`; the folder `empty` is empty",
        );
        fails(read("d/readme.md/x"), ekind, below);
        fails(read("d"), ekind, "`d` is a folder, not a file; list it, or read a file in it");
        fails(read("/"), ekind, "`/` is a folder, not a file; list it, or read a file in it");
        fails(read(""), Code::EPARSE, "the path is empty; `/` is the top of the working dir");
        fails(read("a\0b"), Code::EPARSE, "the path `a\\u{0}b` holds a NUL byte; take it out");
        fails(
            read("../x"),
            eaccess,
            "../x is outside the run's folder; only files in it can be read",
        );
        fails(
            files.write("../x", b""),
            eaccess,
            "../x is outside the run's folder; only files in it can be written",
        );
        fails(files.write("d", b""), ekind, "`d` is a folder, not a file; name a file in it");
        fails(
            files.write("new/", b""),
            ekind,
            "`new/` names a folder, and a file is needed; add the file's name",
        );
        fails(files.write("d/readme.md/x/y", b""), ekind, below);
        fails(files.mkdir("d/readme.md"), eexist, taken);
        fails(files.mkdir("d/readme.md/x"), ekind, below);
        fails(files.list("d/readme.md").map(drop), ekind, below);
        fails(files.remove("d"), eexist, not_empty);
        fails(
            files.remove("/"),
            eaccess,
            "the top of the working dir cannot be removed; name an entry in it",
        );
        fails(
            files.remove_all("a/.."),
            eaccess,
            "the top of the working dir cannot be removed; name an entry in it",
        );
        fails(
            files.rename("d", "d/e"),
            eaccess,
            "the folder `d` cannot be moved into itself, to `d/e`",
        );
        fails(
            files.rename("d", "/"),
            eaccess,
            "the top of the working dir cannot be replaced; name an entry in it",
        );
        let full_name =
            "`empty` is a folder; to move into it, name the target in full: `empty/readme.md`";
        fails(files.rename("d/readme.md", "empty"), eexist, full_name);
        fails(files.rename("empty", "d"), eexist, not_empty);
        fails(files.rename("empty", "d/readme.md"), eexist, taken);
        fails(files.read_link("d").map(drop), Code::EPARSE, "`d` is not a link");
        assert_eq!(names(files, "d"), ["notes.txt", "readme.md"], "{kind}: nothing was changed");
    });
}

#[test]
fn a_missing_file_in_a_large_folder_lists_similar_names() {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    for n in 0..40 {
        files.write(&format!("log-{n:02}.txt"), b"").unwrap();
    }
    files.write("config.toml", b"").unwrap();
    let text = files.read("confg.toml").unwrap_err().to_string();
    assert!(text.contains("has: config.toml, "), "{text}");
    assert!(text.ends_with(", …") && text.len() < 300, "{text}");
}

#[test]
fn entries_are_moved_with_their_content() {
    each(|files, kind| {
        files.write("a/x/1", b"1").unwrap();
        files.write("a/2", b"2").unwrap();
        files.mkdir("a/none").unwrap();
        files.rename("a", "b/c").unwrap();
        assert_eq!(names(files, "b/c"), ["2", "none/", "x/"], "{kind}");
        assert_eq!(files.read("b/c/x/1").unwrap(), "1", "{kind}");
        assert!(files.stat("a").unwrap_err().is_not_found(), "{kind}");
        files.write("over", b"old").unwrap();
        files.rename("b/c/2", "over").unwrap();
        assert_eq!(files.read("over").unwrap(), "2", "{kind}");
        files.rename("over", "over").unwrap();
        files.mkdir("hollow").unwrap();
        files.rename("b/c", "hollow").unwrap();
        assert_eq!(names(files, "hollow"), ["none/", "x/"], "{kind}");
        files.remove_all("hollow").unwrap();
        files.remove_all("b").unwrap();
        assert_eq!(changes(files), ["created over (1 byte)"], "{kind}");
    });
}

#[test]
fn the_overlay_hides_replaces_and_restores_what_the_base_has() {
    let dir = filled();
    let before = tree(dir.path());
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    assert_eq!(files.read("a/2").unwrap(), "22");
    files.remove("a/2").unwrap();
    assert!(files.read("a/2").unwrap_err().is_not_found());
    assert_eq!(names(&files, "a"), ["x/"]);
    assert_eq!(changes(&files), ["deleted a/2 (2 bytes)"]);
    files.write("a/2", b"22").unwrap();
    assert_eq!(changes(&files), [""; 0], "what is written back as it was is no change");
    files.remove_all("a").unwrap();
    assert_eq!(names(&files, "/"), ["keep"]);
    assert_eq!(changes(&files), ["deleted a/"]);
    files.mkdir("a").unwrap();
    assert_eq!(
        names(&files, "a"),
        [""; 0],
        "a folder that is made anew does not show the old content"
    );
    assert_eq!(changes(&files), ["deleted a/2 (2 bytes)", "deleted a/x/"]);
    files.write("a/x/1", b"other").unwrap();
    assert_eq!(changes(&files), ["deleted a/2 (2 bytes)", "modified a/x/1 (5 bytes)"]);
    files.remove_all("a").unwrap();
    files.write("a", b"a file now").unwrap();
    assert_eq!(changes(&files), ["deleted a/", "created a (10 bytes)"]);
    assert_eq!(tree(dir.path()), before, "the base is as it was");
    assert_eq!(
        kinds(&files.apply().unwrap()),
        [("a", ChangeKind::Deleted), ("a", ChangeKind::Created)]
    );
    let after = [("a", "a file now"), ("keep", "keep")]
        .map(|(path, data)| (path.to_owned(), Some(data.into())));
    assert_eq!(tree(dir.path()), Tree::from(after));
    assert_eq!(changes(&files), [""; 0]);
    assert_eq!(files.used(), 0, "what was applied takes no room");
    assert_eq!(files.apply().unwrap(), []);
}

#[test]
fn the_overlay_has_a_limit_and_frees_room() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("big"), vec![7; 100_000]).unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("d/big"), vec![7; 100_000]).unwrap();
    let files = Files::overlay(Some(base(&dir)), 50_000);
    assert_eq!(files.read("big").unwrap().len(), 100_000, "reading takes no room");
    let full = |result: Result<(), FilesError>| {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Full, Code::ENOMEM));
        assert!(
            error.to_string().contains("of 50000; write less, or remove files that the run wrote"),
            "{error}"
        );
    };
    full(files.append("big", b"x"));
    full(files.rename("big", "huge"));
    full(files.rename("d", "e"));
    full(files.write("new/f", &[0; 50_000]));
    full(files.write_at("sparse", 50_000, b"x"));
    full(files.truncate("big", 60_000));
    assert_eq!(
        (files.used(), changes(&files)),
        (0, vec![]),
        "what was refused left nothing behind"
    );
    files.truncate("big", 0).unwrap();
    files.write("f", &[0; 40_000]).unwrap();
    full(files.append("f", &[0; 20_000]));
    full(files.write("f", &[0; 60_000]));
    assert_eq!(files.stat("f").unwrap().size, 40_000);
    files.write("f", &[0; 45_000]).unwrap();
    files.remove("f").unwrap();
    files.write("g", &[0; 45_000]).unwrap();
    files.remove("g").unwrap();
    let mut made = 0;
    while files.write(&format!("empty-{made}"), b"").is_ok() {
        made += 1;
        assert!(made < 1000, "names and nodes count");
    }
    files.remove("empty-0").unwrap();
    files.write("empty-0", b"").unwrap();
}

#[test]
fn reads_are_bounded_but_large_files_can_be_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("huge")).unwrap();
    file.set_len(READ_LIMIT * 2).unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    let error = files.read("huge").unwrap_err();
    assert_eq!(error.code(), Code::EBOUND);
    let text = "`huge` has 134217728 bytes, and at most 67108864 are read at once; read a part of \
                it, or search it";
    assert_eq!(error.to_string(), text);
    assert_eq!(files.read_at("huge", READ_LIMIT * 2 - 3, 10).unwrap(), "\0\0\0");
    assert_eq!(files.append("huge", b"x").unwrap_err().code(), Code::ENOMEM);
    files.truncate("huge", 2).unwrap();
    assert_eq!(files.read("huge").unwrap(), "\0\0");
}

#[test]
fn permissions_are_preserved() {
    use std::os::unix::fs::PermissionsExt;
    let dir = filled();
    let at = |name: &str| dir.path().join(name);
    let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
    std::fs::set_permissions(at("keep"), std::fs::Permissions::from_mode(0o750)).unwrap();
    std::fs::set_permissions(at("a/2"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.rename("keep", "moved").unwrap();
    files.write("moved", b"new words").unwrap();
    files.write("a/2", b"new").unwrap();
    files.apply().unwrap();
    assert_eq!(
        (mode("moved"), mode("a/2")),
        (0o750, 0o755),
        "kept, but for running as somebody else"
    );
    let through = Files::write_through(base(&dir));
    through.write("moved", b"again").unwrap();
    assert_eq!(mode("moved"), 0o750);
}

#[test]
fn names_that_are_not_utf8_are_shown_and_left_alone() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(dir.path().join("d").join(std::ffi::OsStr::from_bytes(b"f\xff")), "x").unwrap();
    for files in [Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), Files::write_through(base(&dir))]
    {
        let list = files.list("d").unwrap();
        assert_eq!((list[0].name.as_str(), list[0].kind), ("f\\xff", EntryKind::Other));
        for error in [
            files.read("d/f\\xff").unwrap_err(),
            files.stat("d/f\\xff").unwrap_err(),
            files.list("d/f\\xff").unwrap_err(),
            files.stat_link("d/f\\xff").unwrap_err(),
            files.rename("d/f\\xff", "g").unwrap_err(),
            files.remove("d/f\\xff").unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Special, "{error}");
            assert!(error.to_string().contains("name is not UTF-8"), "{error}");
        }
        assert!(files.read("d/f\\xfe").unwrap_err().is_not_found());
        assert!(files.read("d/f\u{fffd}").unwrap_err().is_not_found());
        assert_eq!(files.remove("d").unwrap_err().kind(), ErrorKind::NotEmpty);
        for result in [files.remove_all("d"), files.rename("d", "e")] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Special);
        }
        assert_eq!(files.changes().unwrap(), []);
    }
    assert_eq!(tree(dir.path()).len(), 2);
}

#[test]
fn writing_through_is_journaled() {
    let dir = filled();
    let files = Files::write_through(base(&dir));
    files.write("keep", b"other").unwrap();
    files.rename("a/x", "x").unwrap();
    files.remove("a/2").unwrap();
    files.write("n/new", b"n").unwrap();
    assert_eq!(
        changes(&files)[..3],
        ["deleted a/2 (2 bytes)", "deleted a/x/", "modified keep (5 bytes)"]
    );
    assert_eq!(
        changes(&files)[3..],
        ["created n/", "created n/new (1 byte)", "created x/", "created x/1 (1 byte)"]
    );
    assert_eq!(files.apply().unwrap(), [], "nothing is left to carry out");
    assert_eq!(std::fs::read(dir.path().join("n/new")).unwrap(), b"n");
    files.write("keep", b"keep").unwrap();
    files.rename("x", "a/x").unwrap();
    files.write("a/2", b"22").unwrap();
    files.remove_all("n").unwrap();
    assert_eq!(changes(&files), [""; 0], "all is as it was");
    assert_eq!(tree(dir.path()), tree(filled().path()));
}

#[test]
fn a_base_that_cannot_be_opened_is_named() {
    let dir = filled();
    let missing = Files::open_base(&dir.path().join("nowhere")).unwrap_err();
    assert!(
        missing.is_not_found() && missing.to_string().contains("nowhere`; create it"),
        "{missing}"
    );
    assert_eq!(
        Files::open_base(&dir.path().join("keep")).unwrap_err().kind(),
        ErrorKind::NotFolder
    );
}

#[test]
fn one_store_serves_many_threads() {
    let dir = filled();
    for files in [Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), Files::write_through(base(&dir))]
    {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let files = &files;
                scope.spawn(move || {
                    for n in 0..50 {
                        files.append("log", b"line\n").unwrap();
                        files.write(&format!("t{thread}/{n}"), b"x").unwrap();
                        assert_eq!(files.read("a/2").unwrap(), "22");
                    }
                });
            }
        });
        assert_eq!(files.read("log").unwrap().len(), 4 * 50 * 5);
        assert_eq!(
            (0..4).map(|thread| names(&files, &format!("t{thread}")).len()).sum::<usize>(),
            200
        );
    }
}

#[test]
fn the_trace_of_a_run_is_read_but_never_changed_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("_steps.jsonl");
    std::fs::write(&trace, "a line\n").unwrap();
    std::os::unix::fs::symlink("_steps.jsonl", folder.path().join("alias")).unwrap();
    for files in [
        Files::overlay(Some(Files::open_base(folder.path()).unwrap()), 1 << 20),
        Files::write_through(Files::open_base(folder.path()).unwrap()),
    ] {
        files.write("mine", b"forged").unwrap();
        for path in ["_steps.jsonl", "/_steps.jsonl", "./x/../_steps.jsonl", "alias"] {
            assert_eq!(&*files.read(path).unwrap(), b"a line\n", "{path}");
            for refused in [
                files.write(path, b"forged"),
                files.append(path, b"forged"),
                files.truncate(path, 0),
            ] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.code(), Code::EACCESS);
                let words =
                    "write blocked: `_steps.jsonl` is the run's trace, which only the host writes";
                assert_eq!(refused.to_string(), words, "{path}");
            }
        }
        assert!(files.remove("_steps.jsonl").is_err() && files.remove_all("_steps.jsonl").is_err());
        assert!(
            files.rename("mine", "_steps.jsonl").is_err()
                && files.rename("_steps.jsonl", "mine").is_err()
        );
        files.remove("mine").unwrap();
    }
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "a line\n");
}
