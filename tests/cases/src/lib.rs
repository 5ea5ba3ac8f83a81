//! Test cases that are stored as data. This crate finds the files in a folder, splits a file into
//! its cases, and compares the result of a test with the expected result in a file.
//!
//! If the environment variable `UPDATE` is set, a comparison writes the actual result to the file
//! instead of failing. `UPDATE=1 cargo nextest run` therefore updates every expected result in the
//! tree.
//!
//! A case file has this form:
//!
//! ```text
//! Anything before the first case is kept as it is.
//!
//! === title of the case
//! input
//! ---
//! expected
//! ```
//!
//! ```
//! let (preamble, cases) = wattle_cases::split("=== a sum\n1 + 2\n---\n3\n");
//! assert_eq!(preamble, "");
//! assert_eq!((cases[0].title, cases[0].input), ("a sum", "1 + 2\n"));
//! assert_eq!(cases[0].expected, "3\n");
//! ```

#![allow(clippy::panic, reason = "only tests use this crate, and a test fails by panicking")]

pub mod engine;
pub mod guests;
pub mod pooler;
pub mod postgres;

use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

/// A test case in a case file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case<'a> {
    /// The text after `=== `.
    pub title: &'a str,
    /// The lines before the first line `---`, each with its line break.
    pub input: &'a str,
    /// The lines after the line `---`, up to the next case. Empty if the case does not contain this
    /// line yet.
    pub expected: &'a str,
}

/// Splits the text of a case file into the text before the first case, and the cases.
pub fn split(text: &str) -> (&str, Vec<Case<'_>>) {
    const MARK: &str = "=== ";
    let line_starts = text.match_indices(MARK).map(|(at, _)| at);
    let starts: Vec<usize> = line_starts.filter(|at| is_line_start(text, *at)).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let bodies =
        starts.iter().zip(ends).filter_map(|(start, end)| text.get(start + MARK.len()..end));
    let cases = bodies.map(|body| {
        let (title, rest) = body.split_once('\n').unwrap_or((body, ""));
        let (input, expected) = split_line(rest);
        Case { title, input, expected }
    });
    let preamble = starts.first().and_then(|first| text.get(..*first)).unwrap_or(text);
    (preamble, cases.collect())
}

/// Splits a string at its first line that is exactly `---`. Neither part contains that line.
pub fn split_line(text: &str) -> (&str, &str) {
    const LINE: &str = "---\n";
    let mut found =
        text.match_indices(LINE).map(|(at, _)| at).filter(|at| is_line_start(text, *at));
    let parts = found.next().and_then(|at| Some((text.get(..at)?, text.get(at + LINE.len()..)?)));
    parts.unwrap_or((text, ""))
}

fn is_line_start(text: &str, at: usize) -> bool {
    at == 0 || text.get(..at).is_some_and(|before| before.ends_with('\n'))
}

/// Returns the files in a folder that have the given extension, sorted by path.
///
/// # Panics
/// Panics if the folder cannot be read or contains no such file.
pub fn files(folder: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|why| panic!("failed to read {}: {why}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == extension));
    paths.sort();
    assert!(!paths.is_empty(), "{} has no file with the extension `{extension}`", folder.display());
    paths
}

/// Reads a file as text.
///
/// # Panics
/// Panics if the file cannot be read.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path)
        .unwrap_or_else(|why| panic!("failed to read {}: {why}", path.display()))
}

/// Returns true if the environment variable `UPDATE` is set, which means that comparisons update
/// the expected results.
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Returns the difference between two strings as a unified diff.
pub fn diff(expected: &str, found: &str) -> String {
    TextDiff::from_lines(expected, found).unified_diff().to_string()
}

/// Compares a string with the content of a file. A missing file counts as empty.
///
/// # Panics
/// Panics if the string differs from the content and the file is not updated, or if the update
/// fails.
pub fn compare(path: impl AsRef<Path>, found: &str) {
    let mut comparison = Comparison::new();
    comparison.add(path, found);
    comparison.finish();
}

/// A comparison of several strings with files. It reports all differences together.
#[derive(Debug, Default)]
pub struct Comparison {
    differences: String,
    is_updating: bool,
}

impl Comparison {
    /// Starts a comparison. It updates the files if [`is_updating`] returns true.
    pub fn new() -> Self {
        Self { differences: String::new(), is_updating: is_updating() }
    }

    /// Compares a string with the content of a file and records any difference. A missing file
    /// counts as empty.
    ///
    /// # Panics
    /// Panics if the comparison updates the files and this file cannot be written.
    pub fn add(&mut self, path: impl AsRef<Path>, found: &str) {
        let path = path.as_ref();
        let expected = fs::read_to_string(path).unwrap_or_default();
        if found == expected {
            return;
        }
        if self.is_updating {
            fs::write(path, found)
                .unwrap_or_else(|why| panic!("failed to write {}: {why}", path.display()));
        } else {
            self.differences += &format!("{}\n{}\n", path.display(), diff(&expected, found));
        }
    }

    /// Reports the recorded differences.
    ///
    /// # Panics
    /// Panics if there is a difference and the comparison does not update the files.
    pub fn finish(self) {
        let differences = self.differences;
        assert!(differences.is_empty(), "hint: UPDATE=1 writes what was found\n{differences}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "About.\n\n=== one\na\n---\nb\n\n=== two\nsays === and --- within\n";

    #[test]
    fn a_file_is_split_into_its_cases() {
        let one = Case { title: "one", input: "a\n", expected: "b\n\n" };
        let two = Case { title: "two", input: "says === and --- within\n", expected: "" };
        assert_eq!(split(TEXT), ("About.\n\n", vec![one, two]));
        assert_eq!(split("no case"), ("no case", Vec::new()));
    }

    #[test]
    #[allow(clippy::unwrap_used, reason = "tests may panic")]
    fn a_comparison_updates_files_or_reports_each_difference() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut updating = Comparison { is_updating: true, ..Comparison::default() };
        updating.add(&path, "one\n");
        updating.finish();
        assert_eq!(read(&path), "one\n");
        assert_eq!(files(folder.path(), "txt"), std::slice::from_ref(&path));

        let mut strict = Comparison::default();
        strict.add(&path, "one\n");
        strict.add(&path, "two\n");
        assert!(strict.differences.contains("-one\n+two\n"), "{}", strict.differences);
    }
}
