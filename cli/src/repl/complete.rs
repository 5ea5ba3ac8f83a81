//! Completions at the cursor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::completion::Pair;
use wattle_agent::host::capability;
use wattle_agent::host::rt::{Function, forms};

use super::commands::{self, Argument};
use crate::output::highlight::{Kind, Piece, pieces};
use crate::output::visible;

/// Maximum number of entries read per folder.
const MOST: usize = 1_000;

/// The names that can be completed now. They are updated before each input is read.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The programs of the catalog, each with its usage.
    pub(super) programs: Vec<(String, String)>,
    /// The ids of the stored sessions.
    pub(super) sessions: Vec<String>,
    /// The names of models.
    pub(super) models: Vec<String>,
    /// The names of MCP servers.
    pub(super) servers: Vec<String>,
    /// The paths of the session's changes.
    pub(super) changes: Vec<String>,
    /// Number of steps in the last run.
    pub(super) steps: u32,
    /// The source of the open program.
    pub(super) program: String,
    /// The workdir.
    pub(super) root: PathBuf,
}

/// The names, shared with the line editor.
pub(super) type SharedKnown = Arc<Mutex<Known>>;

/// Returns the completions of a line that ends at the cursor, and a byte index. A completion
/// replaces the text from that index to the cursor.
pub(super) fn complete(line: &str, known: &Known) -> (usize, Vec<Pair>) {
    let text = line.trim_start();
    if text.starts_with('(') {
        return program(line, known);
    }
    if text.starts_with('/') {
        return command(line, known);
    }
    let start = last_word(line);
    let word = line.split_at(start).1;
    if word.is_empty() { (line.len(), Vec::new()) } else { (start, files(word, known)) }
}

/// Returns the usage of the host function or form whose first operand the user is about to type.
/// Returns `None` if the next word is not a first operand.
pub(super) fn signature(line: &str) -> Option<String> {
    let text = line.trim_start();
    if !text.starts_with('(') || !line.ends_with(' ') {
        return None;
    }
    let (_, list) = text.trim_end().rsplit_once('(')?;
    let head = list.trim_end_matches(['?', '!']);
    let usage = function(head).map(|function| function.signature.usage()).or_else(|| {
        let form = forms().find(|form| form.name == head)?;
        Some(form.usage.to_owned())
    })?;
    Some(usage)
}

fn function(name: &str) -> Option<&'static Function> {
    let mut all = capability::ALL.iter().flat_map(|capability| capability.functions);
    all.find(|function| function.name == name)
}

/// Completes a slash command, or an argument of one.
fn command(line: &str, known: &Known) -> (usize, Vec<Pair>) {
    let start = last_word(line);
    let (before, word) = line.split_at(start);
    let mut before = before.split_whitespace();
    let Some(name) = before.next() else {
        let named = commands::ALL.iter().filter(|command| command.name.starts_with(word));
        let pair = |command: &commands::Command| Pair {
            display: format!("{:<10}  {}", command.name, command.about),
            replacement: if command.arguments.is_empty() {
                command.name.to_owned()
            } else {
                format!("{} ", command.name)
            },
        };
        return (start, named.map(pair).collect());
    };
    let at = before.count();
    let completed = commands::find(name)
        .and_then(|command| command.completes.get(at).or(command.completes.last()));
    let plain = |names: &[String]| {
        let fitting = names.iter().filter(|name| name.starts_with(word));
        fitting.filter_map(|name| pair(name, name)).collect()
    };
    let found = match completed {
        None => Vec::new(),
        Some(Argument::Program) => programs(word, known),
        Some(Argument::File) => files(word, known),
        Some(Argument::Session) => plain(&known.sessions),
        Some(Argument::Model) => plain(&known.models),
        Some(Argument::Server) => plain(&known.servers),
        Some(Argument::Change) => plain(&known.changes),
        Some(Argument::Step) => {
            plain(&(1..=known.steps).map(|step| step.to_string()).collect::<Vec<_>>())
        }
        Some(Argument::Namespace) => {
            let names = capability::ALL.iter().filter(|own| own.name.starts_with(word));
            names
                .filter_map(|own| pair(own.name, &format!("{}  {}", own.name, own.about)))
                .collect()
        }
        Some(Argument::Topic) => {
            [programs(word, known), functions(word), form_names(word)].concat()
        }
        Some(Argument::Word(words)) => {
            let fitting = words.iter().filter(|own| own.starts_with(word));
            fitting.filter_map(|own| pair(own, own)).collect()
        }
    };
    (start, found)
}

/// Completes a name in a program, or a file name in a string.
fn program(line: &str, known: &Known) -> (usize, Vec<Pair>) {
    let Some(Piece { start, text: word, kind }) = pieces(line).pop() else {
        return (line.len(), Vec::new());
    };
    let is_open_text = word.len() == 1 || !word.ends_with('"');
    if kind == Kind::Text && is_open_text {
        let (quote, name) = word.split_at(1);
        return (start + quote.len(), files(name, known));
    }
    if matches!(kind, Kind::Parenthesis | Kind::Comment) || word.trim().is_empty() {
        return (line.len(), Vec::new());
    }
    if word.starts_with('$') && !word.contains('.') {
        let mut found = names(&known.program);
        found.extend(names(line.split_at(start).0));
        found.retain(|name| name.starts_with(word) && name != word);
        found.sort();
        found.dedup();
        return (start, found.iter().filter_map(|name| pair(name, name)).collect());
    }
    match word.strip_prefix('$') {
        Some(word) => (start + 1, functions(word)),
        None => (start, [functions(word), form_names(word)].concat()),
    }
}

/// Returns the names of variables and functions in a program.
fn names(program: &str) -> Vec<String> {
    let names = pieces(program).into_iter().filter(|piece| piece.kind == Kind::Name);
    names.map(|piece| piece.text.to_owned()).collect()
}

fn programs(word: &str, known: &Known) -> Vec<Pair> {
    let named = known.programs.iter().filter(|(name, _)| name.starts_with(word));
    named.filter_map(|(name, usage)| pair(name, usage)).collect()
}

fn functions(word: &str) -> Vec<Pair> {
    let all = capability::ALL.iter().flat_map(|capability| capability.functions);
    let fitting = all.filter(|own| own.name.starts_with(word) && !own.name.contains('/'));
    let one = |own: &Function| pair(own.name, &format!("{}  {}", own.name, own.signature.usage()));
    fitting.filter_map(one).collect()
}

fn form_names(word: &str) -> Vec<Pair> {
    let fitting = forms().filter(|form| form.name.starts_with(word));
    fitting.filter_map(|form| pair(form.name, &format!("{}  {}", form.name, form.usage))).collect()
}

/// Returns the files in the workdir, and in the session's changes, whose paths begin with `word`.
fn files(word: &str, known: &Known) -> Vec<Pair> {
    let (folder, name) = word.rsplit_once('/').map_or(("", word), |(folder, name)| (folder, name));
    // Paths that lead out of the workdir are not completed.
    if folder.split('/').any(|part| part == "..") || word.starts_with('/') {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    let entries = std::fs::read_dir(known.root.join(Path::new(folder)));
    for entry in entries.into_iter().flatten().flatten().take(MOST) {
        let Ok(own) = entry.file_name().into_string() else { continue };
        if !own.starts_with(name) || own.starts_with('.') && name.is_empty() {
            continue;
        }
        let end = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
        let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        found.push(format!("{before}{own}{end}"));
    }
    found.extend(known.changes.iter().filter(|path| path.starts_with(word)).cloned());
    found.sort();
    found.dedup();
    found.iter().filter_map(|path| pair(path, path)).collect()
}

/// Returns a completion, or `None` if its replacement cannot be inserted safely.
fn pair(replacement: &str, display: &str) -> Option<Pair> {
    is_safe(replacement)
        .then(|| Pair { display: visible(display), replacement: replacement.to_owned() })
}

/// Returns true if the line editor can insert a one-line string unchanged, because the string
/// contains no characters that control the terminal, or that hide or reorder text.
pub(super) fn is_safe(text: &str) -> bool {
    !text.contains(char::is_control) && visible(text) == text
}

/// Returns the byte index at which the last word starts.
fn last_word(line: &str) -> usize {
    let last = line.char_indices().rev().find(|(_, c)| c.is_whitespace());
    last.map_or(0, |(at, space)| at + space.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> (tempfile::TempDir, Known) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("data/sales.csv"), "").unwrap();
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        let known = Known {
            programs: vec![("text_count".to_owned(), "text_count(text: string)".to_owned())],
            sessions: vec!["s1".to_owned()],
            program: "(let $total 3)".to_owned(),
            steps: 2,
            root: dir.path().to_owned(),
            ..Known::default()
        };
        (dir, known)
    }

    #[test]
    fn the_names_that_fit_are_offered() {
        let (_dir, known) = known();
        for (line, start, texts) in [
            ("/hel", 0, &["/help "][..]),
            ("/run tex", 5, &["text_count"]),
            ("/run text_count no", 16, &["notes.txt"]),
            ("/resume ", 8, &["s1"]),
            ("/source ", 8, &["1", "2"]),
            ("look at da", 8, &["data/"]),
            ("look at data/", 8, &["data/sales.csv"]),
            ("(out $to", 5, &["$total"]),
            ("(let $taxes 1) (out $ta", 20, &["$taxes"]),
            ("(str.from_in", 1, &["str.from_int"]),
            ("(call $str.from_in", 7, &["str.from_int"]),
            ("(fs.read \"data/s", 10, &["data/sales.csv"]),
            ("(unles", 1, &["unless"]),
            ("(repea", 1, &[]),
            ("(each", 1, &["each"]),
            ("", 0, &[]),
        ] {
            let (at, found) = complete(line, &known);
            let found: Vec<&str> = found.iter().map(|pair| &*pair.replacement).collect();
            assert_eq!((at, found.as_slice()), (start, texts), "{line:?}");
        }
    }

    #[test]
    fn names_that_would_control_the_terminal_are_not_offered() {
        let (dir, mut known) = known();
        std::fs::write(dir.path().join("zz\u{202e}file\u{2066}.txt"), "").unwrap();
        std::fs::write(dir.path().join("zz\u{1b}[2J.txt"), "").unwrap();
        let hostile = ["zz\u{202e}a".to_owned(), "zz\u{1b}[2J".to_owned(), "zz\nb".to_owned()];
        known.sessions = hostile.to_vec();
        known.models = hostile.to_vec();
        known.servers = hostile.to_vec();
        known.changes = hostile.to_vec();
        known.programs = hostile.iter().map(|name| (name.clone(), name.clone())).collect();
        known.program = format!("(let $zz{} 1)", hostile[0]);
        let lines = ["/resume zz", "/model zz", "/apply zz", "/run zz", "look at zz", "(out $zz"];
        for line in lines.into_iter().chain(["(fs.read \"zz"]) {
            assert!(complete(line, &known).1.is_empty(), "{line}");
        }
    }

    #[test]
    fn nothing_outside_of_the_workdir_is_offered() {
        let (_dir, known) = known();
        for word in ["../", "/et", "data/../../"] {
            assert!(complete(&format!("look at {word}"), &known).1.is_empty(), "{word}");
        }
    }

    #[test]
    fn a_function_shows_its_operands() {
        assert!(signature("(out (str.find ").unwrap().starts_with("(str.find s"));
        assert_eq!(signature("(let ").as_deref(), Some("(let $x V)"));
        assert_eq!(signature("(let $x "), None);
        assert_eq!(signature("(str.find"), None);
    }
}
