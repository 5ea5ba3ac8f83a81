//! `grep`, `egrep`, `fgrep`: print matching lines. The search uses ripgrep's searcher.

mod matcher;
mod sink;

use std::fs;

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use regex::bytes::Regex;

use self::matcher::Pattern;
use self::sink::{Found, Look, Shown};
use crate::options::Takes::{Maybe, Nothing, Value};
use crate::options::{self, Known, Line};
use crate::pattern;
use crate::say::{Failure, about, ended, names, out, say};

const OPTIONS: &[Known] = &[
    ('E', "extended-regexp", Nothing),
    ('F', "fixed-strings", Nothing),
    ('G', "basic-regexp", Nothing),
    ('P', "perl-regexp", Nothing),
    ('e', "regexp", Value),
    ('f', "file", Value),
    ('i', "ignore-case", Nothing),
    ('y', "", Nothing),
    ('\0', "no-ignore-case", Nothing),
    ('w', "word-regexp", Nothing),
    ('x', "line-regexp", Nothing),
    ('v', "invert-match", Nothing),
    ('c', "count", Nothing),
    ('l', "files-with-matches", Nothing),
    ('L', "files-without-match", Nothing),
    ('m', "max-count", Value),
    ('o', "only-matching", Nothing),
    ('q', "quiet", Nothing),
    ('\0', "silent", Nothing),
    ('s', "no-messages", Nothing),
    ('b', "byte-offset", Nothing),
    ('H', "with-filename", Nothing),
    ('h', "no-filename", Nothing),
    ('n', "line-number", Nothing),
    ('T', "initial-tab", Nothing),
    ('Z', "null", Nothing),
    ('z', "null-data", Nothing),
    ('a', "text", Nothing),
    ('I', "", Nothing),
    ('U', "binary", Nothing),
    ('A', "after-context", Value),
    ('B', "before-context", Value),
    ('C', "context", Value),
    ('r', "recursive", Nothing),
    ('R', "dereference-recursive", Nothing),
    ('\0', "include", Value),
    ('\0', "exclude", Value),
    ('\0', "exclude-from", Value),
    ('\0', "exclude-dir", Value),
    ('d', "directories", Value),
    ('D', "devices", Value),
    ('\0', "label", Value),
    ('\0', "binary-files", Value),
    ('\0', "color", Maybe),
    ('\0', "colour", Maybe),
    ('\0', "line-buffered", Nothing),
    ('\0', "group-separator", Value),
    ('\0', "no-group-separator", Nothing),
    ('V', "version", Nothing),
    ('\0', "help", Nothing),
];

/// The options that select the files to search.
struct Files {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
    exclude_folders: Vec<Regex>,
    recursive: bool,
    follow: bool,
    skip_folders: bool,
    silent: bool,
}

/// The state of a grep run.
struct Grep<'a> {
    name: &'a str,
    pattern: Pattern,
    searcher: Searcher,
    look: Look,
    files: Files,
    label: String,
    matched: bool,
    failed: bool,
}

/// Runs `grep`, `egrep` or `fgrep`, depending on the first word, and returns its exit status.
pub(crate) fn run(args: &[String]) -> i32 {
    let name = args.first().map_or("grep", String::as_str);
    let words: Vec<String> = args.iter().map(|word| context_number(word)).collect();
    let line = options::parse(&words, OPTIONS, true).map_err(Failure::from);
    ended(name, 2, line.and_then(|line| prepared(name, &line)))
}

/// Rewrites a numeric option, such as `-3`, to `-C3`.
fn context_number(word: &str) -> String {
    match word.strip_prefix('-') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("-C{digits}")
        }
        _ => word.to_owned(),
    }
}

fn prepared(name: &str, line: &Line) -> Result<i32, Failure> {
    if line.has("help") {
        crate::say::line(format_args!(
            "usage: {name} [-EFGPciLlnoqsvwxhHrR] [-e PATTERN] [-f FILE] [-A N] [-B N] [-C N] [-m N] PATTERN [FILE...]"
        ));
        return Ok(0);
    }
    if line.has("version") {
        crate::say::line(format_args!("grep (wattle)"));
        return Ok(0);
    }
    let mut operands = line.operands.clone();
    let pattern = matcher::compile(name, line, &mut operands)?;
    let files = Files {
        include: globs(line, "include")?,
        exclude: globs(line, "exclude")?,
        exclude_folders: globs(line, "exclude-dir")?,
        recursive: line.has("r") || line.has("R") || line.value("d") == Some("recurse"),
        follow: line.has("R"),
        skip_folders: line.value("d") == Some("skip"),
        silent: line.has("s"),
    };
    let given = !operands.is_empty();
    if !given {
        operands.push(if files.recursive { "." } else { "-" }.to_owned());
    }
    let is_folder = |path: &String| fs::metadata(path).is_ok_and(|found| found.is_dir());
    let many = operands.len() > 1 || (files.recursive && operands.iter().any(is_folder));
    let context = context(line)?;
    let look = look(line, many, context)?;
    let searcher = searcher(&look, context);
    let label = line.value("label").unwrap_or("(standard input)").to_owned();
    let mut grep =
        Grep { name, pattern, searcher, look, files, label, matched: false, failed: false };
    for operand in &operands {
        let shown = if operand == "." && !given { "" } else { operand };
        if grep.operand(operand, shown) {
            break;
        }
    }
    Ok(match (grep.matched, grep.failed) {
        (true, false) => 0,
        (true, true) if grep.look.shown == Shown::Nothing => 0,
        (_, true) => 2,
        (false, false) => 1,
    })
}

/// The numbers of context lines printed before and after each matching line.
#[derive(Clone, Copy)]
struct Context {
    before: usize,
    after: usize,
}

fn context(line: &Line) -> Result<Context, String> {
    let both = number(line, "C")?.unwrap_or(0);
    let before = number(line, "B")?.unwrap_or(both);
    Ok(Context { before, after: number(line, "A")?.unwrap_or(both) })
}

/// Returns the format of the output. If `many` is true, file names are printed by default.
fn look(line: &Line, many: bool, context: Context) -> Result<Look, String> {
    let shown = if line.has("q") || line.has("silent") {
        Shown::Nothing
    } else if line.has("L") {
        Shown::NamesWithout
    } else if line.has("l") {
        Shown::Names
    } else if line.has("c") {
        Shown::Count
    } else {
        Shown::Lines
    };
    let named = line.options.iter().rev().find_map(|found| match line.name(found).as_str() {
        "H" => Some(true),
        "h" => Some(false),
        _ => None,
    });
    let binary = match line.value("binary-files") {
        _ if line.has("a") => sink::Binary::Text,
        Some("text") => sink::Binary::Text,
        Some("without-match") => sink::Binary::Skip,
        None if line.has("I") => sink::Binary::Skip,
        Some("binary") | None => sink::Binary::Told,
        Some(_) => return Err("unknown binary-files type".to_owned()),
    };
    let separator = (!line.has("no-group-separator"))
        .then(|| line.value("group-separator").unwrap_or("--").to_owned());
    Ok(Look {
        shown,
        only: line.has("o"),
        invert: line.has("v"),
        named: named.unwrap_or(many),
        numbered: line.has("n"),
        offsets: line.has("b"),
        tab: line.has("T"),
        null: line.has("Z"),
        end: if line.has("z") { 0 } else { b'\n' },
        binary,
        most: number(line, "m")?.map(|most| most as u64),
        separator: separator.filter(|_| context.before > 0 || context.after > 0),
        coloured: [line.value("color"), line.value("colour")].contains(&Some("always")),
        prompt: line.has("line-buffered"),
    })
}

fn searcher(look: &Look, context: Context) -> Searcher {
    let plain = look.shown == Shown::Lines && !look.only;
    let text = look.binary == sink::Binary::Text || look.end == 0;
    SearcherBuilder::new()
        .line_terminator(grep_matcher::LineTerminator::byte(look.end))
        .invert_match(look.invert)
        .line_number(look.numbered)
        .before_context(if plain { context.before } else { 0 })
        .after_context(if plain { context.after } else { 0 })
        .bom_sniffing(false)
        .binary_detection(if text { BinaryDetection::none() } else { BinaryDetection::convert(0) })
        .build()
}

impl Grep<'_> {
    /// Searches one operand. Returns true if the remaining operands need not be searched.
    fn operand(&mut self, path: &str, shown: &str) -> bool {
        if path == "-" {
            return self.file(path, &self.label.clone());
        }
        match fs::metadata(path) {
            Ok(kind) if kind.is_dir() && self.files.recursive => self.folder(path, shown),
            Ok(kind) if kind.is_dir() => {
                if !self.files.skip_folders {
                    self.failed = true;
                    say(self.name, format_args!("{path}: Is a directory"));
                }
                false
            }
            Ok(_) if self.files.excluded(path) => false,
            Ok(_) => self.file(path, path),
            Err(error) => {
                self.fail(path, &error);
                false
            }
        }
    }

    fn folder(&mut self, path: &str, shown: &str) -> bool {
        let names = names(path).unwrap_or_else(|error| {
            self.fail(path, &error);
            Vec::new()
        });
        for name in names {
            let join = |folder: &str| match folder {
                "" => name.clone(),
                _ if folder.ends_with('/') => format!("{folder}{name}"),
                _ => format!("{folder}/{name}"),
            };
            let path = join(path);
            let shown = join(shown);
            let Ok(kind) = fs::symlink_metadata(&path) else { continue };
            let kind = if !kind.is_symlink() {
                kind
            } else if let Ok(kind) = fs::metadata(&path)
                && self.files.follow
            {
                kind
            } else {
                continue;
            };
            let over = if kind.is_dir() {
                let skipped = self
                    .files
                    .exclude_folders
                    .iter()
                    .any(|pattern| pattern.is_match(name.as_bytes()));
                !skipped && self.folder(&path, &shown)
            } else {
                !self.files.excluded(&name) && self.file(&path, &shown)
            };
            if over {
                return true;
            }
        }
        false
    }

    fn file(&mut self, path: &str, shown: &str) -> bool {
        let mut found = Found::new(&self.look, &self.pattern, shown, out());
        let done = if path == "-" {
            self.searcher.search_reader(&self.pattern, std::io::stdin().lock(), &mut found)
        } else {
            fs::File::open(path)
                .and_then(|file| self.searcher.search_reader(&self.pattern, file, &mut found))
        };
        let matched = found.end();
        self.matched |= matched;
        if let Err(error) = done {
            self.fail(path, &error);
        }
        matched && self.look.shown == Shown::Nothing
    }

    fn fail(&mut self, path: &str, error: &std::io::Error) {
        self.failed = true;
        if !self.files.silent {
            about(self.name, path, error);
        }
    }
}

impl Files {
    fn excluded(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path).as_bytes();
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        any(&self.exclude) || (!self.include.is_empty() && !any(&self.include))
    }
}

fn globs(line: &Line, option: &str) -> Result<Vec<Regex>, String> {
    let globs = line.values(option).map(|glob| glob.trim_end_matches('/'));
    globs.map(|glob| pattern::names(glob, false)).collect()
}

fn number(line: &Line, option: &str) -> Result<Option<usize>, String> {
    line.parsed(option, |text| match option {
        "m" => "invalid max count".to_owned(),
        _ => format!("{text}: invalid context length argument"),
    })
}
