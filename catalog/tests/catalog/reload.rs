//! Tests of rescanning a catalog's folders.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use wattle_catalog::{Catalog, Entry, Folders, Problem};

fn program(name: &str, description: &str, body: &str) -> String {
    format!(";;; name = \"{name}\"\n;;; description = \"{description}\"\n{body}\n")
}

fn any(_: &Catalog, _: &Entry) -> Result<(), Problem> {
    Ok(())
}

fn described(catalog: &Catalog, name: &str) -> Option<String> {
    catalog.get(name).map(|entry| entry.meta().description.clone())
}

fn problems(catalog: &Catalog, folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    catalog.problems().iter().map(|problem| problem.to_string().replace(&folder, "DIR")).collect()
}

#[test]
fn added_changed_and_removed_files_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let empty = Folders::open(&[dir.path()], &any);
    assert!(empty.rescan(&any).is_none());

    fs::write(at("a.wat"), program("mine", "first", "0")).unwrap();
    fs::write(at("notes.txt"), "no program").unwrap();
    let one = empty.rescan(&any).unwrap();
    assert_eq!(described(one.catalog(), "mine").as_deref(), Some("first"));
    assert!(empty.catalog().get("mine").is_none(), "a holder of the previous catalog keeps it");
    assert!(one.rescan(&any).is_none());

    fs::write(at("a.wat"), program("mine", "other", "0")).unwrap();
    let other = one.rescan(&any).unwrap();
    assert_eq!(described(other.catalog(), "mine").as_deref(), Some("other"));

    fs::rename(at("a.wat"), at("b.wat")).unwrap();
    let moved = other.rescan(&any).unwrap();
    assert_eq!(moved.catalog().get("mine").unwrap().origin().path(), Some(at("b.wat").as_path()));

    fs::remove_file(at("b.wat")).unwrap();
    let removed = moved.rescan(&any).unwrap();
    assert!(removed.catalog().get("mine").is_none());
    assert_eq!(removed.catalog().problems(), []);
}

#[test]
fn programs_that_call_each_other_are_checked_together() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, calls: &str| {
        fs::write(dir.path().join(format!("{name}.wat")), program(name, calls, calls)).unwrap();
    };
    let fault = || wattle_rt::assemble("(resv", &wattle_rt::Signatures::new([])).unwrap_err();
    // The body of a program is the name of the one that it calls.
    let check = |catalog: &Catalog, entry: &Entry| match catalog.get(entry.body().trim()) {
        Some(_) => Ok(()),
        None => Err(entry.refused(&fault())),
    };
    let empty = Folders::open(&[dir.path()], &check);
    write("first", "second");
    write("second", "first");
    let both = empty.rescan(&check).unwrap();
    assert_eq!(both.catalog().problems(), []);
    assert!(["first", "second"].iter().all(|name| both.catalog().get(name).is_some()));

    // A program that calls a rejected one is rejected, too, and keeps its previous version.
    write("second", "third");
    write("third", "missing");
    let kept = both.rescan(&check).unwrap();
    assert_eq!(kept.catalog().problems().len(), 2, "{:?}", kept.catalog().problems());
    assert_eq!(described(kept.catalog(), "second").as_deref(), Some("first"));
    assert!(kept.catalog().get("third").is_none());
    assert!(kept.rescan(&check).is_none(), "the problems are reported once");

    write("third", "first");
    let third = kept.rescan(&check).unwrap();
    assert!(third.catalog().get("third").is_some());
}

#[test]
fn only_changed_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(format!("{name}.wat")), program(name, "first", "0")).unwrap();
    }
    let read = RefCell::new(Vec::new());
    let check = |_: &Catalog, entry: &Entry| {
        read.borrow_mut().push(entry.name().to_string());
        Ok(())
    };
    let before = Folders::open(&[dir.path()], &check);
    assert_eq!(read.take(), ["a", "b", "c"]);
    fs::write(dir.path().join("b.wat"), program("b", "second", "0")).unwrap();
    assert!(before.rescan(&check).is_some());
    assert_eq!(read.take(), ["b"]);
}

#[test]
fn a_broken_version_is_ignored_until_it_is_fixed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.wat");
    fs::write(&path, program("mine", "good", "0")).unwrap();
    let good = Folders::open(&[dir.path()], &any);

    fs::write(&path, ";;; name = \"mine\"\n0\n").unwrap();
    let previous = good.rescan(&any).unwrap();
    assert_eq!(described(previous.catalog(), "mine").as_deref(), Some("good"));
    assert_eq!(
        problems(previous.catalog(), dir.path()),
        ["failed to load `DIR/a.wat`, line 1: the key `description` is missing; the previous \
          version stays in use"]
    );
    assert!(previous.catalog().problems().iter().all(Problem::has_previous));
    assert!(previous.rescan(&any).is_none(), "the problem is reported once");

    // A program that the check rejects is treated as an invalid program.
    fs::write(&path, program("mine", "refused", "0")).unwrap();
    let refuse = |_: &Catalog, entry: &Entry| {
        let fault = wattle_rt::assemble("(resv", &wattle_rt::Signatures::new([])).unwrap_err();
        if entry.meta().description == "refused" { Err(entry.refused(&fault)) } else { Ok(()) }
    };
    let refused = previous.rescan(&refuse).unwrap();
    assert_eq!(described(refused.catalog(), "mine").as_deref(), Some("good"));
    let found = problems(refused.catalog(), dir.path());
    assert!(
        found.first().is_some_and(|problem| problem.contains("the program does not compile")
            && problem.contains("stays in use")),
        "{found:?}"
    );

    fs::write(&path, program("mine", "fixed", "0")).unwrap();
    let fixed = refused.rescan(&refuse).unwrap();
    assert_eq!(described(fixed.catalog(), "mine").as_deref(), Some("fixed"));
    assert_eq!(fixed.catalog().problems(), []);
}

#[test]
fn a_new_broken_file_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let before = Folders::open(&[dir.path()], &any);
    fs::write(dir.path().join("http_get.wat"), "no front matter").unwrap();
    let after = before.rescan(&any).unwrap();
    assert!(
        after.catalog().get("http_get").unwrap().origin().path().is_none(),
        "the built-in program stays"
    );
    assert!(after.catalog().problems().iter().all(|problem| !problem.has_previous()));
}

#[test]
fn a_folder_may_appear_and_disappear() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("programs");
    let missing = Folders::open(&[&folder], &any);
    assert_eq!(missing.catalog().problems().len(), 1);
    assert!(missing.rescan(&any).is_none(), "the problem is reported once");
    fs::create_dir(&folder).unwrap();
    let there = missing.rescan(&any).unwrap();
    assert_eq!(there.catalog().problems(), []);
    fs::remove_dir(&folder).unwrap();
    assert_eq!(there.rescan(&any).unwrap().catalog().problems().len(), 1);
}

#[test]
fn a_catalog_without_folders_never_changes() {
    assert!(Folders::from(Catalog::built_in()).rescan(&any).is_none());
}
