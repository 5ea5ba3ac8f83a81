//! The orientation that a run receives at its start: the names of the workdir's entries, and the
//! files that the user's message mentions, small ones whole, of the others the first lines.
//!
//! The files are read as a program of the run would read them: through the run's overlay and under
//! its policy. Entries that the policy denies, that need a user's approval, or that `.gitignore` or
//! `.wattleignore` name are left out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::files::{
    EVENTS_FILE, Entry, EntryKind, Files, ISSUES_FILE, IgnoreRules, LEDGER_FILE, PathGuard,
    REPOSITORY, ROTATED_FOLDER, Stat, TRACE_FILE,
};
use wattle_capability::fs::Fs;
use wattle_machine::{FileHead, Orientation, WorkdirEntry};
use wattle_rt::{Grants, Guard, Target};

/// Maximum time for gathering the orientation. After this time, the run starts with the parts that
/// have been gathered so far.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum number of workdir entries whose names are shown.
const MAX_NAMES: usize = 20;

/// Maximum number of workdir entries that are examined.
const MAX_EXAMINED: usize = 1_000;

/// Maximum number of files that are shown.
const MAX_FILES: usize = 5;

/// Maximum size of a file that is shown whole, in bytes.
const MAX_WHOLE_BYTES: u64 = 600;

/// Maximum number of lines shown of a larger file.
const MAX_LINES: usize = 3;
/// Maximum length of a shown line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Number of bytes read per file. A character has at most four bytes.
const HEAD_BYTES: usize = 4 * MAX_LINES * (MAX_LINE_CHARS + 1);

/// Number of bytes at each end of a message that are searched for paths.
const SEARCHED_BYTES: usize = 32 << 10;

/// Maximum number of strings in a message that are tried as paths.
const MAX_TRIED: usize = 64;

/// Maximum length of a path in a message, in bytes.
const MAX_PATH_BYTES: usize = 300;

/// The files in the workdir's root that the host writes or that are only for tools. They are
/// irrelevant to a task.
const NOT_SHOWN: &[&str] =
    &[TRACE_FILE, LEDGER_FILE, ISSUES_FILE, EVENTS_FILE, ROTATED_FOLDER, REPOSITORY];

/// Returns the orientation of a run with these grants and this message. Returns `None` if there is
/// nothing to show, or the run has no files.
pub(crate) async fn orientation(grants: &Grants, message: &str) -> Option<Orientation> {
    let files = Arc::clone(&grants.config::<Fs>()?.0);
    let (guard, message) = (grants.guard().cloned(), message.to_owned());
    let deadline = Instant::now() + MAX_TIME;
    let gathered =
        tokio::task::spawn_blocking(move || gather(&files, guard.as_ref(), &message, deadline));
    let gathered = tokio::time::timeout(MAX_TIME, gathered).await.ok()?.ok()?;
    (!gathered.is_empty()).then_some(gathered)
}

fn gather(
    files: &Files,
    guard: Option<&Arc<dyn Guard>>,
    message: &str,
    deadline: Instant,
) -> Orientation {
    let workdir = Workdir {
        listed: under(files, guard, "fs.list"),
        read: under(files, guard, "fs.read"),
        deadline,
    };
    // A workdir that cannot be listed or is too large is shown without names.
    let mut names = workdir.listed.list("/").unwrap_or_default();
    let rules = IgnoreRules::default().within(&workdir.read, "", &names);
    names.retain(|entry| !rules.ignore(&entry.name, entry.kind == EntryKind::Folder));
    names.retain(|entry| !NOT_SHOWN.contains(&entry.name.as_str()));
    names.sort_by_key(|entry| entry.name.starts_with('.'));
    let unexamined = names.len().saturating_sub(MAX_EXAMINED);
    let examined = names.iter().take(MAX_EXAMINED).filter_map(|entry| workdir.entry(entry));
    let mut entries: Vec<WorkdirEntry> = examined.collect();
    let heads = workdir.heads(message, &entries);
    let more = entries.len().saturating_sub(MAX_NAMES) + unexamined;
    entries.truncate(MAX_NAMES);
    Orientation { entries, more, files: heads }
}

/// Returns a handle to the files. The run's guard checks each access as if the host function
/// `function` made it.
fn under(files: &Files, guard: Option<&Arc<dyn Guard>>, function: &'static str) -> Files {
    let guard = guard.cloned();
    let admit: PathGuard = Arc::new(move |target: Target, path: &str| match &guard {
        Some(guard) => guard.call("fs", function, target, path),
        None => Ok(()),
    });
    files.guarded(admit)
}

/// The run's files, restricted to those that its programs may list and read.
struct Workdir {
    listed: Files,
    read: Files,
    deadline: Instant,
}

impl Workdir {
    /// Returns the entry to show, or `None` if programs could not read it or the deadline has
    /// passed. A link is shown as its target.
    fn entry(&self, entry: &Entry) -> Option<WorkdirEntry> {
        if entry.kind == EntryKind::Other || self.is_late() {
            return None;
        }
        let Stat { kind, size, .. } = self.read.stat(&entry.name).ok()?;
        let size = match kind {
            EntryKind::File => Some(size),
            EntryKind::Folder => {
                self.listed.stat(&entry.name).ok()?;
                None
            }
            EntryKind::Link | EntryKind::Other => return None,
        };
        Some(WorkdirEntry { name: entry.name.clone(), size })
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Returns the beginnings of the text files that the message names, in the order in which they
    /// are named.
    fn heads(&self, message: &str, entries: &[WorkdirEntry]) -> Vec<FileHead> {
        let mut known = BTreeSet::new();
        let candidates = candidates(message, entries);
        let heads = candidates.into_iter().take(MAX_TRIED).filter_map(|path| {
            if self.is_late() {
                return None;
            }
            let real = self.read.real_path(&path).ok()?;
            let name = real.trim_start_matches('/');
            let is_new = !NOT_SHOWN.contains(&name) && known.insert(name.to_owned());
            is_new.then(|| self.head(path))?
        });
        heads.take(MAX_FILES).collect()
    }

    /// Returns the beginning of a file, or `None` if the file is empty or not text.
    fn head(&self, path: String) -> Option<FileHead> {
        let stat = self.read.stat(&path).ok().filter(|stat| stat.kind == EntryKind::File)?;
        let bytes = self.read.read_at(&path, 0, HEAD_BYTES as u64).ok()?;
        let is_whole = bytes.len() as u64 == stat.size && stat.size <= MAX_WHOLE_BYTES;
        let lines = if is_whole { all_lines(&bytes)? } else { first_lines(&bytes)? };
        let path = path.trim_start_matches("./").trim_start_matches('/').to_owned();
        Some(FileHead { path, size: stat.size, lines, is_whole })
    }
}

/// Returns the first lines of a file. Long lines are truncated. Returns `None` if the bytes are not
/// text, or there are no lines.
fn first_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if error.error_len().is_none() && bytes.len() == HEAD_BYTES => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let text = shown_text(text)?;
    let line = |line: &str| wattle_rt::truncate(line, MAX_LINE_CHARS).into_owned();
    Some(text.lines().take(MAX_LINES).map(line).collect())
}

/// Returns the lines of a whole file, or `None` if it is not text or has no lines.
fn all_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = shown_text(std::str::from_utf8(bytes).ok()?)?;
    Some(text.lines().map(str::to_owned).collect())
}

/// Returns a text without its byte order mark, or `None` if it is binary or has only whitespace.
fn shown_text(text: &str) -> Option<&str> {
    let text = wattle_rt::without_bom(text);
    (!text.contains('\0') && !text.trim().is_empty()).then_some(text)
}

/// Returns the strings in a message that may be file paths, in the order in which they appear:
/// words with a dot or a slash, quoted strings, and the names in the workdir.
fn candidates(message: &str, entries: &[WorkdirEntry]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (from, part) in searched(message) {
        let mut add = |text: &'_ str, at: usize| {
            let is_path = text.contains(['.', '/']) && !text.contains("://");
            if is_path && text.len() <= MAX_PATH_BYTES && text.contains(char::is_alphanumeric) {
                found.push((from + at, part.get(at..at + text.len()).unwrap_or_default()));
            }
        };
        for (at, word) in words(part, |c| c.is_whitespace() || is_separator(c)) {
            add(word, at);
        }
        for quote in ['"', '\'', '`'] {
            for (at, quoted) in words(part, |c| c == quote || c == '\n') {
                let is_opened = part.get(..at).is_some_and(|before| before.ends_with(quote));
                if is_opened && quoted.contains(' ') {
                    add(quoted, at);
                }
            }
        }
        for entry in entries.iter().filter(|entry| entry.size.is_some()) {
            let name = entry.name.as_str();
            if let Some(at) = position(part, name).filter(|_| name.len() >= 3) {
                found.extend(part.get(at..at + name.len()).map(|name| (from + at, name)));
            }
        }
    }
    // Among strings at the same position, the longest is tried first.
    found.sort_by_key(|(at, text)| (*at, std::cmp::Reverse(text.len())));
    let mut seen = BTreeSet::new();
    found.retain(|(_, text)| seen.insert(*text));
    found.into_iter().map(|(_, text)| text.to_owned()).collect()
}

/// Returns the parts of a message that are searched, each with its offset.
fn searched(message: &str) -> Vec<(usize, &str)> {
    if message.len() <= 2 * SEARCHED_BYTES {
        return vec![(0, message)];
    }
    let head = message.floor_char_boundary(SEARCHED_BYTES);
    let tail = message.ceil_char_boundary(message.len() - SEARCHED_BYTES);
    let part = |from, to| (from, message.get(from..to).unwrap_or_default());
    vec![part(0, head), part(tail, message.len())]
}

/// Returns true for a character other than whitespace that ends a path in prose.
fn is_separator(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}')
        || matches!(c, ',' | ';' | '|' | '*' | '=' | '“' | '”' | '„' | '‘' | '’' | '«' | '»')
}

/// Splits a string after each character for which `is_end` is true, trims sentence punctuation from
/// both ends of each part, and returns the non-empty parts with their offsets.
fn words(text: &str, is_end: impl Fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let parts = text.split_inclusive(is_end).map(move |part| {
        let start = at;
        at += part.len();
        (start, part)
    });
    parts.filter_map(|(start, part)| {
        let is_punctuation =
            |c: char| c.is_whitespace() || is_separator(c) || matches!(c, '.' | ':' | '!' | '?');
        let end = part.trim_end_matches(is_punctuation);
        let bare = end.trim_start_matches(|c: char| c.is_whitespace() || is_separator(c));
        (!bare.is_empty()).then_some((start + end.len() - bare.len(), bare))
    })
}

/// Returns the offset of the first occurrence of a name that is not part of a longer word, or
/// `None` if there is none.
fn position(text: &str, name: &str) -> Option<usize> {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).and_then(|text| text.chars().next_back());
        let mut after = text.get(at + name.len()..).unwrap_or_default().chars();
        let follows = after.next();
        // A dot may end a sentence or continue a name.
        let is_longer = follows == Some('.') && after.next().is_some_and(char::is_alphanumeric);
        !before.is_some_and(|c| continues(c) || c == '.')
            && !follows.is_some_and(continues)
            && !is_longer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Vec<WorkdirEntry> {
        let entry = |name: &&str| WorkdirEntry { name: (*name).to_owned(), size: Some(1) };
        names.iter().map(entry).collect()
    }

    #[test]
    fn paths_in_a_message_are_found_in_its_order() {
        for (message, expected) in [
            ("sum the prices in sales.csv, please", &["sales.csv"][..]),
            ("Read notes/today.md. Then compare it to ./b.txt!", &["notes/today.md", "./b.txt"]),
            ("what is in `my file.txt`?", &["my file.txt", "file.txt"]),
            ("\"dir/a b.txt\" and 'c.txt'", &["dir/a b.txt", "dir/a", "b.txt", "c.txt"]),
            ("see https://example.com/a.txt", &[]),
            ("the Makefile, not Makefiles", &["Makefile"]),
            ("Makefile.old differs", &["Makefile.old"]),
            ("read my notes today", &["my notes"]),
            ("... and/or 3.5 ...", &["and/or", "3.5"]),
            ("(a.txt) [b.txt] {c.txt} <d.txt>", &["a.txt", "b.txt", "c.txt", "d.txt"]),
            ("a.txt a.txt", &["a.txt"]),
            ("größe.txt und „naïve.csv“", &["größe.txt", "naïve.csv"]),
            ("nothing here", &[]),
            ("", &[]),
        ] {
            let known = entries(&["Makefile", "my notes", "x", "my file.txt"]);
            assert_eq!(candidates(message, &known), expected, "{message}");
        }
    }

    #[test]
    fn a_long_message_is_searched_at_its_ends() {
        let long = format!("a.txt {} b.txt", "wörd.x ".repeat(40_000));
        let found = candidates(&long, &[]);
        assert_eq!(found.first().map(String::as_str), Some("a.txt"));
        assert_eq!(found.last().map(String::as_str), Some("b.txt"));
        let one = "x/".repeat(100_000);
        assert!(candidates(&one, &entries(&["x/x"])).len() <= 1);
    }

    #[test]
    fn only_text_has_first_lines() {
        let lines = |bytes: &[u8]| first_lines(bytes);
        assert_eq!(lines(b"a\r\nb\nc\nd"), Some(vec!["a".into(), "b".into(), "c".into()]));
        assert_eq!(lines(b"\xef\xbb\xbfa"), Some(vec!["a".into()]));
        for nothing in [&b""[..], b" \n\n", b"a\0b", b"\xff\xfea", b"\x89PNG\r\n\x1a\n", b"a\xc3"] {
            assert_eq!(lines(nothing), None, "{nothing:?}");
        }
        let long = "é".repeat(HEAD_BYTES);
        let cut = lines(long.as_bytes().get(..HEAD_BYTES).unwrap_or_default()).unwrap_or_default();
        assert_eq!(cut, [format!("{}…", "é".repeat(MAX_LINE_CHARS))]);
        let odd = format!("a{long}");
        assert!(lines(odd.as_bytes().get(..HEAD_BYTES).unwrap_or_default()).is_some());
    }

    #[test]
    fn a_small_file_is_shown_whole() {
        let files = Files::overlay(None, 1 << 20);
        let small: String = (0..100).map(|n| format!("{n:04}\n")).collect();
        files.write("small.txt", small.as_bytes()).unwrap();
        files.write("line.txt", "x".repeat(600).as_bytes()).unwrap();
        files.write("large.txt", "y\n".repeat(301).as_bytes()).unwrap();
        let deadline = Instant::now() + MAX_TIME;
        let shown = gather(&files, None, "compare small.txt, line.txt and large.txt", deadline);
        let shown: Vec<(&str, usize, bool)> = shown
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.lines.len(), file.is_whole))
            .collect();
        let expected = [("small.txt", 100, true), ("line.txt", 1, true), ("large.txt", 3, false)];
        assert_eq!(shown, expected);
    }
}
