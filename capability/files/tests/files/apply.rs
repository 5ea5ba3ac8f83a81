//! Tests that changes can be applied while another process changes the base: conflicts are
//! reported, and nothing is lost.

use wattle_files::{ApplyError, ErrorKind, Files, OVERLAY_LIMIT};

use crate::common::{base, tree};

struct World {
    dir: tempfile::TempDir,
    files: Files,
}

impl World {
    /// Creates a base with a file at each path, and the files of a run that uses the base.
    fn over(paths: &[&str]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let world = World { files: Files::overlay(Some(base(&dir)), OVERLAY_LIMIT), dir };
        for path in paths {
            world.user(path, path);
        }
        world
    }

    /// Writes a file in the base directly, as the user would.
    fn user(&self, path: &str, data: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, data).unwrap();
    }

    fn disk(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join(path)).ok()
    }

    fn refused(&self) -> (Vec<String>, Vec<(String, ErrorKind)>) {
        let ApplyError { done, failed } = self.files.apply().unwrap_err();
        let failed = failed
            .into_iter()
            .map(|(change, reason)| (change.to_string(), reason.kind()))
            .collect();
        (done.iter().map(ToString::to_string).collect(), failed)
    }
}

fn conflict(change: &str) -> (String, ErrorKind) {
    (change.to_owned(), ErrorKind::Conflict)
}

#[test]
fn a_file_that_changed_since_it_was_read_is_left_as_it_is() {
    let world = World::over(&["read", "appended", "free"]);
    world.files.read("read").unwrap();
    world.files.append("appended", b"+").unwrap();
    world.user("read", "the user's words");
    world.user("appended", "the user's words");
    world.files.write("read", b"from what was read").unwrap();
    world.files.write("free", b"new").unwrap();
    let (done, failed) = world.refused();
    assert_eq!(done, ["modified free (3 bytes)"]);
    assert_eq!(
        failed,
        [conflict("modified appended (9 bytes)"), conflict("modified read (18 bytes)")]
    );
    assert_eq!(world.disk("read").unwrap(), "the user's words");
    assert_eq!(world.disk("appended").unwrap(), "the user's words");
    assert_eq!(world.disk("free").unwrap(), "new");
    let error = world.files.apply().unwrap_err();
    assert!(error.has_conflict() && error.done.is_empty() && error.failed.len() == 2);
    let lines = error.to_string();
    assert!(
        lines.starts_with("failed to apply 2 of 2 changes\nfailed: modified appended (9 bytes): "),
        "{lines}"
    );
    assert_eq!(
        world.files.read("read").unwrap(),
        "from what was read",
        "the run's content is not lost"
    );
    world.user("read", "from what was read");
    world.files.remove("appended").unwrap();
    assert_eq!(
        world.refused().1,
        [conflict("deleted appended (16 bytes)")],
        "a file with equal content is not a change"
    );
}

#[test]
fn what_was_done_is_no_conflict_at_the_next_attempt() {
    let world = World::over(&["a", "b"]);
    world.files.write("a", b"1").unwrap();
    world.files.write("b", b"1").unwrap();
    world.user("b", "user");
    assert_eq!(world.refused().0, ["modified a (1 byte)"]);
    world.files.write("a", b"22").unwrap();
    assert_eq!(
        world.refused(),
        (vec!["modified a (2 bytes)".into()], vec![conflict("modified b (1 byte)")])
    );
}

#[test]
fn new_entries_do_not_replace_those_that_appeared() {
    let world = World::over(&[]);
    world.files.write("new", b"mine").unwrap();
    world.files.write("folder/deep/f", b"mine").unwrap();
    world.user("new", "theirs");
    world.user("folder/theirs", "theirs");
    let (done, failed) = world.refused();
    assert_eq!(
        done,
        ["created folder/deep/", "created folder/deep/f (4 bytes)"],
        "a folder may be made by both"
    );
    assert_eq!(failed, [conflict("modified new (4 bytes)")]);
    assert_eq!(
        (world.disk("new").unwrap(), world.disk("folder/theirs").unwrap()),
        ("theirs".into(), "theirs".into())
    );
}

#[test]
fn removals_wait_for_everything_else() {
    let world = World::over(&["from", "other", "gone/a", "gone/b"]);
    world.files.rename("from", "to").unwrap();
    world.files.remove_all("gone").unwrap();
    world.files.write("other", b"mine").unwrap();
    world.user("other", "theirs");
    let (done, failed) = world.refused();
    assert_eq!(done, ["created to (4 bytes)"]);
    let all = ["deleted from (4 bytes)", "deleted gone/", "modified other (4 bytes)"];
    assert_eq!(failed, all.map(conflict));
    assert!(
        world.disk("from").is_some() && world.disk("gone/b").is_some(),
        "nothing is removed before its copy is safe"
    );
    world.user("other", "mine");
    world.files.apply().unwrap();
    assert_eq!(tree(world.dir.path()).into_keys().collect::<Vec<_>>(), ["other", "to"]);
}

#[test]
fn a_folder_is_not_removed_with_what_somebody_put_there() {
    let world = World::over(&["d/a", "e/a", "f/a"]);
    world.files.remove_all("d").unwrap();
    world.files.remove_all("e").unwrap();
    world.files.write("e/mine", b"m").unwrap();
    world.user("d/theirs", "t");
    world.user("e/a", "edited by them");
    let (_, failed) = world.refused();
    assert_eq!(
        failed,
        ["deleted d/", "deleted e/a (14 bytes)", "created e/mine (1 byte)"].map(conflict)
    );
    assert_eq!(
        (world.disk("d/theirs").as_deref(), world.disk("e/a").as_deref()),
        (Some("t"), Some("edited by them"))
    );
}

#[test]
fn a_folder_that_vanished_or_became_a_link_is_not_written_through() {
    let outside = tempfile::tempdir().unwrap();
    for swap in ["gone", "outside", "inside", "file"] {
        let world = World::over(&["d/a", "inside/x"]);
        world.files.write("d/new", b"n").unwrap();
        let d = world.dir.path().join("d");
        std::fs::remove_dir_all(&d).unwrap();
        match swap {
            "outside" => std::os::unix::fs::symlink(outside.path(), &d).unwrap(),
            "inside" => std::os::unix::fs::symlink("inside", &d).unwrap(),
            "file" => std::fs::write(&d, "f").unwrap(),
            _ => {}
        }
        let before = tree(world.dir.path());
        let (done, _) = world.refused();
        assert!(done.is_empty(), "{swap}: {done:?}");
        assert_eq!(tree(world.dir.path()), before, "{swap}");
        assert_eq!(tree(outside.path()).len(), 0, "{swap}");
    }
}

#[test]
fn no_temporary_file_is_left_behind() {
    let world = World::over(&["a"]);
    world.files.write("a", b"1").unwrap();
    world.files.write("b/c", b"2").unwrap();
    world.files.apply().unwrap();
    assert_eq!(tree(world.dir.path()).into_keys().collect::<Vec<_>>(), ["a", "b/", "b/c"]);
}

#[test]
fn without_a_base_nothing_can_be_carried_out() {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    assert_eq!(files.apply().unwrap(), []);
    files.write("a", b"1").unwrap();
    let error = files.apply().unwrap_err();
    assert_eq!((error.done.len(), error.failed[0].1.kind()), (0, ErrorKind::Denied));
}

#[test]
fn a_conflict_says_what_is_there_and_can_be_tried_again() {
    let world = World::over(&["edited", "removed", "replaced", "quiet"]);
    for path in ["edited", "removed", "replaced", "quiet"] {
        world.files.append(path, b" by the run").unwrap();
    }
    world.user("edited", "the user's words");
    std::fs::remove_file(world.dir.path().join("removed")).unwrap();
    std::fs::remove_file(world.dir.path().join("replaced")).unwrap();
    std::fs::create_dir(world.dir.path().join("replaced")).unwrap();
    let words = world.files.apply().unwrap_err().to_string();
    for line in [
        "somebody else changed `edited` since the run read it: it is now a file of 16 bytes; it \
         is left unchanged",
        "somebody else changed `removed` since the run read it: it no longer exists; it is left \
         unchanged",
        "somebody else changed `replaced` since the run read it: it is now a folder; it is left \
         unchanged",
        "\napplied: modified quiet (16 bytes)",
        "\nhint: move your own version away, or merge the two, then apply the changes again",
    ] {
        assert!(words.contains(line), "{line}\n{words}");
    }
    assert!(
        words.starts_with("failed to apply 3 of 5 changes")
            || words.starts_with("failed to apply 4 of 5"),
        "{words}"
    );
    std::fs::rename(world.dir.path().join("edited"), world.dir.path().join("edited.mine")).unwrap();
    std::fs::remove_dir(world.dir.path().join("replaced")).unwrap();
    let _ = world.files.apply();
    assert_eq!(world.disk("edited").as_deref(), Some("edited by the run"));
    assert_eq!(world.disk("edited.mine").as_deref(), Some("the user's words"));
    assert_eq!(world.disk("removed").as_deref(), Some("removed by the run"));
}
