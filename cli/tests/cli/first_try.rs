//! Tests of programs that two writers wrote from the prompt alone, without running them. One writer
//! was careful. The other was in a hurry and was used to writing Python and Clojure. The programs
//! have not been changed since.
//!
//! `first_try/tasks.md` contains the tasks, `careful/` and `hurried/` contain the programs, and
//! `one/` and `two/` contain two sets of input files, called worlds. `cases.txt` contains cases of
//! this form:
//!
//! ```text
//! === task world
//! the arguments, one on each line
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

#[test]
fn programs_written_from_the_prompt_alone_are_right() {
    let text = std::fs::read_to_string(folder().join("cases.txt")).unwrap();
    let (_, cases) = wattle_cases::split(&text);
    assert_eq!(cases.len(), 28);
    let mut wrong = Vec::new();
    for case in cases {
        let (task, world) = case.title.split_once(' ').unwrap();
        for writer in ["careful", "hurried"] {
            let place = Place::new();
            copy(&folder().join(world), &place.work());
            let program = folder().join(writer).join(format!("{task}.wat"));
            let args = ["exec", program.to_str().unwrap()].into_iter().chain(case.input.lines());
            let done = place.wattle(args).run();
            if (done.code, done.stdout.trim_end()) != (0, case.expected.trim_end()) {
                wrong.push(format!("{writer} {}: {done:?}", case.title));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
