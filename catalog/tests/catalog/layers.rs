//! Tests of catalogs that combine folders with the built-in programs.

use std::fs;
use std::path::Path;

use wattle_catalog::{Catalog, Name};

fn write(folder: &Path, file: &str, name: &str, description: &str) {
    fs::write(
        folder.join(file),
        format!(";;; name = \"{name}\"\n;;; description = \"{description}\"\n0\n"),
    )
    .unwrap();
}

/// Writes a program whose front matter says that it replaces a built-in program.
fn replacing(folder: &Path, file: &str, name: &str, description: &str) {
    let front = format!(
        ";;; name = \"{name}\"\n;;; description = \"{description}\"\n;;; replaces = \
         \"{name}\"\n0\n"
    );
    fs::write(folder.join(file), front).unwrap();
}

/// Returns the problems of a catalog, with the folder's path replaced with `DIR`.
fn problems(catalog: &Catalog, folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    catalog.problems().iter().map(|problem| problem.to_string().replace(&folder, "DIR")).collect()
}

fn names(found: Vec<&Name>) -> Vec<&str> {
    found.into_iter().map(Name::as_str).collect()
}

#[test]
fn built_in_programs_have_no_problems() {
    let catalog = Catalog::built_in();
    assert_eq!(catalog.problems(), []);
    assert!(catalog.len() >= 20 && !catalog.is_empty());
    let listed: Vec<&str> = catalog.iter().map(|entry| entry.name().as_str()).collect();
    assert!(listed.is_sorted());
}

#[test]
fn a_later_folder_wins() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    replacing(first.path(), "mine.wat", "http_get", "from the first");
    write(first.path(), "other.wat", "other", "from the first");
    replacing(second.path(), "mine.wat", "http_get", "from the second");
    let catalog = Catalog::load(&[first.path(), second.path()]);
    assert_eq!(catalog.problems(), []);
    let entry = catalog.get("http_get").unwrap();
    assert_eq!(entry.meta().description, "from the second");
    assert_eq!(entry.origin().path(), Some(second.path().join("mine.wat").as_path()));
    assert_eq!(catalog.get("other").unwrap().meta().description, "from the first");
    assert_eq!(catalog.len(), Catalog::built_in().len() + 1);
    let turned = Catalog::load(&[second.path(), first.path()]);
    assert_eq!(turned.get("http_get").unwrap().meta().description, "from the first");
}

#[test]
fn two_programs_of_one_name_in_a_folder_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["a.wat", "b.wat", "c.wat"] {
        replacing(folder.path(), file, "http_get", "mine");
    }
    let catalog = Catalog::load(&[folder.path()]);
    let hint = "hint: both files are left out; rename one of the programs, or move it to a folder \
                that is added later";
    assert_eq!(
        problems(&catalog, folder.path()),
        [
            format!(
                "failed to load `DIR/c.wat`: `http_get` is also the name of `DIR/a.wat`\n{hint}"
            ),
            format!(
                "failed to load `DIR/c.wat`: `http_get` is also the name of `DIR/b.wat`\n{hint}"
            ),
        ]
    );
    assert_eq!(
        catalog.get("http_get").unwrap().origin().path(),
        None,
        "the built-in program stays"
    );
}

#[test]
fn unreadable_files_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(folder.path(), "good.wat", "good", "works");
    fs::write(at("broken.wat"), ";;; name = \"x\"\n;;; descr = \"d\"\n0").unwrap();
    fs::write(at("bytes.wat"), b";;; name = \"x\"\n\xff").unwrap();
    fs::write(at("huge.wat"), " ".repeat((1 << 20) + 1)).unwrap();
    fs::write(
        at("largest.wat"),
        format!(";;; name = \"largest\"\n;;; description = \"d\"\n0{}", " ".repeat((1 << 20) - 45)),
    )
    .unwrap();
    fs::create_dir(at("folder.wat")).unwrap();
    // Other kinds of files, hidden files, and folders are skipped.
    fs::write(at("notes.txt"), "not a program").unwrap();
    fs::write(at(".hidden.wat"), "not a program").unwrap();
    fs::create_dir(at("sub")).unwrap();
    write(&at("sub"), "deep.wat", "deep", "not read");
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("good.wat"), at("link.wat")).unwrap();

    let missing = at("missing");
    let catalog = Catalog::load(&[folder.path(), &missing, &at("notes.txt")]);
    assert_eq!(
        problems(&catalog, folder.path()),
        [
            "failed to load `DIR/broken.wat`, line 2: unknown key `descr`\nhint: did you mean \
             `description`? the keys here are name, description, args, returns, result, uses, grants, version, \
             replaces, tags, exclusive, silent, whole, timeout_ms, example",
            "failed to load `DIR/bytes.wat`: not UTF-8 at byte 15\nhint: save the file as UTF-8",
            "failed to load `DIR/folder.wat`: not a regular file",
            "failed to load `DIR/huge.wat`: larger than 1048576 bytes\nhint: read large data from \
             a file or from `kv` when the program runs",
            #[cfg(unix)]
            "failed to load `DIR/link.wat`: a link, and the catalog reads only regular \
             files\nhint: copy the file there, or add the folder that it points to",
            "failed to load `DIR/missing`: cannot be read: not found",
            "failed to load `DIR/notes.txt`: cannot be read: not a folder",
        ]
    );
    assert!(catalog.get("good").is_some() && catalog.get("largest").is_some());
    assert!(catalog.get("deep").is_none() && catalog.get("x").is_none());
}

#[test]
fn suggestions_are_close_and_few() {
    let catalog = Catalog::built_in();
    for (query, expected) in [
        ("HTTP-Get", "http_get"),
        ("catalog.http_get", "http_get"),
        ("read_file", "file_read"),
        ("fileGrep", "file_grep"),
        ("ai_sumarize", "ai_summarize"),
    ] {
        assert_eq!(names(catalog.nearest(query)).first(), Some(&expected), "{query}");
        assert!(catalog.get(query).is_none(), "{query} is no name");
    }
    assert!(catalog.nearest("kv_gett").len() <= 3);
    for query in ["", "blockchain", "weather", &"http_get".repeat(10_000)] {
        assert_eq!(names(catalog.nearest(query)), [""; 0], "{query}");
    }
}

#[test]
fn a_program_replaces_a_built_in_one_only_if_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.wat", "file_read", "shadows");
    replacing(folder.path(), "b.wat", "http_get", "replaces");
    replacing(folder.path(), "c.wat", "nothing_built_in", "replaces nothing");
    let other = ";;; name = \"mine\"\n;;; description = \"d\"\n;;; replaces = \"file_write\"\n0\n";
    fs::write(folder.path().join("d.wat"), other).unwrap();
    let catalog = Catalog::load(&[folder.path()]);
    let mut found = problems(&catalog, folder.path());
    found.sort();
    assert_eq!(
        found,
        [
            "failed to load `DIR/a.wat`: `file_read` is the name of a built-in program, and the \
             front matter has no `replaces`\nhint: rename the program, or add `replaces = \
             \"file_read\"` to use it in place of the built-in one",
            "failed to load `DIR/c.wat`: `replaces` names `nothing_built_in`, and no built-in \
             program has that name\nhint: remove the key `replaces`, or correct its name and the \
             program's",
            "failed to load `DIR/d.wat`, line 3: `replaces` names \"file_write\", and the program \
             is called `mine`\nhint: a program replaces the built-in one of its own name: \
             `replaces = \"mine\"`",
        ]
    );
    assert_eq!(
        catalog.get("file_read").unwrap().origin().path(),
        None,
        "the built-in program stays"
    );
    let replaced = catalog.get("http_get").unwrap();
    assert_eq!(replaced.meta().replaces.as_deref(), Some("http_get"));
    assert!(replaced.manual().contains("  replaces the built-in program of that name\n"));
}
