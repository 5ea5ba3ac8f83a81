//! Tests of programs that writers wrote from the prompt alone, without running them. The programs
//! have not been changed since.
//!
//! `first_try/` has the programs of a careful writer, and of one who was in a hurry and was used to
//! writing Python and Clojure. `first_try/values/` has those of three writers, for tasks on records,
//! tables, numbers and the results of other programs.
//!
//! In each of the two folders `tasks.md` contains the tasks. The other folders contain the programs
//! of one writer, or the files that programs read: a world, whose folder `tools` is a catalog.
//! `cases.txt` contains cases of this form:
//!
//! ```text
//! === task world
//! the arguments, one on each line, or as JSON strings
//! ---
//! output
//! ```

use std::path::{Path, PathBuf};

use crate::place::Place;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/first_try")
}

/// Copies a folder recursively.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Runs each program of the writers on each case of its task. Returns the number of runs, and
/// describes those whose output is wrong.
fn wrong_programs(folder: &Path, writers: &[&str]) -> (usize, Vec<String>) {
    let text = wattle_cases::read(folder.join("cases.txt"));
    let (_, cases) = wattle_cases::split(&text);
    let mut wrong = Vec::new();
    for case in &cases {
        let (task, world) = case.title.split_once(' ').unwrap();
        for writer in writers {
            let place = Place::new();
            copy(&folder.join(world), &place.work());
            let program = folder.join(writer).join(format!("{task}.wat"));
            let mut args = vec!["exec".to_owned(), program.to_str().unwrap().to_owned()];
            args.extend(case.input.lines().map(|line| match line.starts_with('"') {
                true => serde_json::from_str(line).unwrap(),
                false => line.to_owned(),
            }));
            if place.work().join("tools").exists() {
                args.extend(["--catalog", "tools"].map(str::to_owned));
            }
            let done = place.wattle(args).run();
            if (done.code, done.stdout.trim_end()) != (0, case.expected.trim_end()) {
                wrong.push(format!("{writer} {}: {done:?}", case.title));
            }
        }
    }
    (cases.len() * writers.len(), wrong)
}

#[test]
fn programs_written_from_the_prompt_alone_are_right() {
    let (runs, wrong) = wrong_programs(&folder(), &["careful", "hurried"]);
    assert_eq!(runs, 56);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nearly_all_programs_on_values_written_from_the_prompt_alone_are_right() {
    let (runs, wrong) = wrong_programs(&folder().join("values"), &["first", "second", "third"]);
    assert_eq!(runs, 60);
    assert!(wrong.len() <= 2, "{}", wrong.join("\n"));
}
