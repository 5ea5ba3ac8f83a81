//! What is wrong with a file of the catalog: all the words in one place.

use std::fmt;

use wattle_rt::Code;

use crate::folder::LARGEST;
use crate::{ArgumentError, TypeHint, nearest};

/// What is wrong with one file, or folder, of the catalog. The file is left out, or its version before stays in use; the rest of
/// the catalog works.
///
/// Shows as ``failed to load `tools/x.wat`, line 3: unknown key `desc` ``, with a hint on a line of its own where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    place: String,
    line: Option<usize>,
    fault: Box<Fault>,
    kept: bool,
}

impl Problem {
    pub(crate) fn new(place: String, line: Option<usize>, fault: Fault) -> Problem {
        Problem { place, line, fault: Box::new(fault), kept: false }
    }

    /// The same, of a file whose version before stays in use.
    pub(crate) fn kept(self) -> Problem {
        Problem { kept: true, ..self }
    }

    /// Whether the version before stays in use.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// The file, or folder, that it is about.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The line of the file, counted from 1, where it stands in one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The rule that is broken, in words.
    #[must_use]
    pub fn message(&self) -> String {
        self.fault.to_string()
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.fault.hint()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to load `{}`", self.place)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.fault)?;
        if self.kept {
            f.write_str("; the version before stays in use")?;
        }
        match self.fault.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Fault {
    // Files and folders.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("a link, and the catalog reads plain files only")]
    Link,
    #[error("not a plain file")]
    NotAFile,
    #[error("larger than {} bytes", LARGEST)]
    TooLarge,
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    #[error("`{name}` is also the name of `{other}`")]
    Twice { name: String, other: String },

    #[error("`{name}` is the name of a built-in program, and the front matter has no `replaces`")]
    Shadows { name: String },
    #[error("`replaces` names `{0}`, and no built-in program has that name")]
    ReplacesNothing(String),

    // Front matter as a whole.
    #[error("no front matter")]
    NoFrontMatter { later: Option<usize> },
    #[error("the front matter is no TOML: {0}")]
    Toml(String),
    #[error("wrong value: {0}")]
    Value(String),
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, known: Vec<String>, top: bool },
    #[error("unknown type_hint `{hint}`")]
    UnknownHint { hint: String, known: Vec<String> },
    #[error("the key `{0}` is missing")]
    MissingKey(String),
    #[error("no body behind the front matter")]
    NoBody,

    // Keys.
    #[error("{} is no name of a program", crate::argument::excerpt(.0))]
    Name(String),
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("{} is no name of a capability", crate::argument::excerpt(.0))]
    Uses(String),
    #[error("timeout_ms is 0")]
    NoTime,
    #[error("`replaces` names {}, and the program is called `{name}`", crate::argument::excerpt(.replaced))]
    ReplacesOther { name: String, replaced: String },
    #[error("{} is no name of an argument", crate::argument::excerpt(.0))]
    ArgName(String),
    #[error("a second argument `{0}`")]
    ArgTwice(String),
    #[error("the required argument `{arg}` comes after the optional `{optional}`")]
    ArgOrder { arg: String, optional: String },
    #[error("the default of `{arg}` is not {}: {given}", crate::argument::with_article(*.hint))]
    Default { arg: String, hint: TypeHint, given: String },

    // Examples.
    #[error("the example's call does not fit: {0}")]
    ExampleArgs(ArgumentError),
    #[error("the example has both `results` and `contains`")]
    ResultsTwice,
    #[error("the example expects nothing")]
    ExpectsNothing,
    #[error("unknown code {0}")]
    ExampleCode(String),
    #[error("{} is no path of a file below the top", crate::argument::excerpt(.0))]
    ExamplePath(String),
    #[error("{} is no absolute URL of http or https", crate::argument::excerpt(.0))]
    ExampleUrl(String),
    #[error("{} is no HTTP method", crate::argument::excerpt(.0))]
    ExampleMethod(String),
    #[error("the time `now` has no date, no time of day or no zone")]
    ExampleNow,
    #[error("{0} is no HTTP status")]
    ExampleStatus(i64),

    // Body.
    #[error("the program does not compile: {message}")]
    Program { message: String, hint: Option<String> },
    #[error("the body calls `{0}`, which `uses` does not name")]
    Undeclared(String),
    #[error("`uses` names `{0}`, which the body does not call")]
    Unused(String),
}

impl Fault {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Fault::Link => "copy the file there, or add the folder that it points into".to_owned(),
            Fault::TooLarge => "read large data from a file or from `kv` when the program runs".to_owned(),
            Fault::NotUtf8(_) => "save the file as UTF-8".to_owned(),
            Fault::Twice { .. } => {
                "both files are left out; rename one of the programs, or move it to a folder that is added later"
                    .to_owned()
            }
            Fault::Shadows { name } => {
                format!("rename the program, or add `replaces = \"{name}\"` to use it in place of the built-in one")
            }
            Fault::ReplacesNothing(_) => "remove the key `replaces`, or correct its name and the program's".to_owned(),
            Fault::ReplacesOther { name, .. } => {
                format!("a program replaces the built-in one of its own name: `replaces = \"{name}\"`")
            }
            Fault::NoFrontMatter { later: Some(line) } => {
                format!("it begins in line {line}, behind the body; move it to the top")
            }
            Fault::NoFrontMatter { later: None } => {
                "begin the file with TOML in lines that begin with `;;;`, at least `name` and `description`".to_owned()
            }
            Fault::Toml(_) => {
                "up to the body every line that begins with `;;;` is TOML; begin a comment with `;;`".to_owned()
            }
            Fault::UnknownKey { key, known, top } => unknown_key(key, known, *top)?,
            Fault::UnknownHint { hint, known } => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let nearest = nearest::key(hint, &names)?;
                format!("the nearest is `{nearest}`; known are {}", known.join(", "))
            }
            Fault::NoBody => "write the program behind the lines that begin with `;;;`".to_owned(),
            Fault::Name(_) => crate::name::NotAName.to_string(),
            Fault::Uses(_) => "write the part before the dot of a host function's name, such as \"http\"".to_owned(),
            Fault::NoTime => "give milliseconds above 0, or leave the key out".to_owned(),
            Fault::ArgName(_) => "a small letter, then small letters, digits and `_`, 64 at the most".to_owned(),
            Fault::ArgOrder { arg, .. } => format!("give `{arg}` a default, or move it to the front"),
            Fault::Default { hint: TypeHint::String, .. } => "write it in quotes".to_owned(),
            Fault::ExampleArgs(error) => error.hint(),
            Fault::ResultsTwice => {
                "`results` are the whole results, `contains` texts that occur in them; keep one".to_owned()
            }
            Fault::ExpectsNothing => "give `results`, `contains`, `code`, `files_after` or `kv_after`".to_owned(),
            Fault::ExampleCode(_) => {
                let names: Vec<&str> = Code::ALL.iter().filter_map(|c| c.name()).collect();
                format!("give a number or one of {}", names.join(", "))
            }
            Fault::ExamplePath(_) => {
                "write it relative to the top of the run's files, such as \"notes/a.txt\"".to_owned()
            }
            Fault::ExampleNow => "write it as TOML does, such as now = 2026-03-01T12:00:00Z".to_owned(),
            Fault::ExampleStatus(_) => "a status lies between 100 and 599".to_owned(),
            Fault::Program { hint, .. } => hint.clone()?,
            Fault::Undeclared(name) => format!("add \"{name}\" to `uses`"),
            Fault::Unused(name) => format!("remove \"{name}\" from `uses`"),
            _ => return None,
        })
    }
}

/// The keys of the whole program, which TOML gives to a table when they stand behind its header.
const TOP: [&str; 8] = ["returns", "uses", "version", "replaces", "tags", "exclusive", "silent", "timeout_ms"];

fn unknown_key(key: &str, known: &[String], top: bool) -> Option<String> {
    if !top && TOP.contains(&key) {
        return Some(format!("`{key}` belongs to the program; move it before the first `[[…]]`"));
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let nearest = nearest::key(key, &names)?;
    Some(format!("the nearest known key is `{nearest}`; known here are {}", known.join(", ")))
}
