//! Problems with catalog files, and the messages that describe them.

use std::fmt;
use std::path::Path;

use wattle_rt::Code;

use crate::folder::MAX_FILE;
use crate::front::MAX_FORMAT;
use crate::limits::{
    MAX_SKILL_BYTES, MAX_SKILL_DEPTH, MAX_SKILL_FILE, MAX_SKILL_FILES, MAX_SKILL_NAME, MAX_SKILLS,
};
use crate::{ArgumentError, TypeHint, nearest};

/// A problem with a file or folder of the catalog. The file is omitted, or its previous version
/// stays in use. The rest of the catalog is unaffected.
///
/// It is displayed as ``failed to load `tools/x.wat`, line 3: unknown key `desc` ``, followed by a
/// line with a hint if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    path: String,
    line: Option<usize>,
    fault: Box<Fault>,
    has_previous: bool,
}

impl Problem {
    pub(crate) fn new(path: String, line: Option<usize>, fault: Fault) -> Problem {
        Problem { path, line, fault: Box::new(fault), has_previous: false }
    }

    /// Returns the problem of a folder that does not exist.
    #[must_use]
    pub fn no_folder(folder: &Path) -> Problem {
        Problem::new(folder.display().to_string(), None, Fault::Unreadable("not found".to_owned()))
    }

    /// Returns the cause of the problem.
    pub(crate) fn into_fault(self) -> Fault {
        *self.fault
    }

    /// Returns the problem with a note that the file's previous version stays in use.
    pub(crate) fn with_previous(self) -> Problem {
        Problem { has_previous: true, ..self }
    }

    /// Returns true if the previous version of the file stays in use.
    #[must_use]
    pub fn has_previous(&self) -> bool {
        self.has_previous
    }

    /// Returns the path of the file or folder.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the number of the line with the problem, counted from 1, or `None` if the problem
    /// does not concern a particular line.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> String {
        self.fault.to_string()
    }

    /// Returns a hint about how to fix the problem, or `None` if there is none.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.fault.hint()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to load `{}`", self.path)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.fault)?;
        if self.has_previous {
            f.write_str("; the previous version stays in use")?;
        }
        match self.fault.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

/// The cause of a [`Problem`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Fault {
    // Files and folders.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("a link, and the catalog reads only regular files")]
    Link,
    #[error("not a regular file")]
    NotAFile,
    #[error("larger than {} bytes", MAX_FILE)]
    TooLarge,
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    #[error("`{name}` is also the name of `{other}`")]
    Duplicate { name: String, other: String },

    #[error("`{name}` is the name of a built-in program, and the front matter has no `replaces`")]
    Shadows { name: String },
    #[error("`replaces` names `{0}`, and no built-in program has that name")]
    ReplacesNothing(String),

    // Front matter as a whole.
    #[error("no front matter")]
    NoFrontMatter { later: Option<usize> },
    #[error("the front matter is not valid TOML: {0}")]
    Toml(String),
    #[error("invalid value: {0}")]
    Value(String),
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, known: Vec<String>, top: bool },
    #[error("unknown type_hint `{hint}`")]
    UnknownHint { hint: String, known: Vec<String> },
    #[error("the key `{0}` is missing")]
    MissingKey(String),
    #[error("no body after the front matter")]
    NoBody,

    // Keys.
    #[error("{} is not a valid program name", crate::argument::excerpt(.0))]
    Name(String),
    #[error("the {0} is empty")]
    Empty(&'static str),
    #[error("{} is not a valid capability name", crate::argument::excerpt(.0))]
    Uses(String),
    #[error("{} is not a valid grant: {why}", crate::argument::excerpt(.grant))]
    Grant { grant: String, why: String },
    #[error("timeout_ms is 0")]
    ZeroTimeout,
    #[error(
        "`replaces` names {}, and the program is called `{name}`",
        crate::argument::excerpt(.replaced)
    )]
    ReplacesOther { name: String, replaced: String },
    #[error("{} is not a valid argument name", crate::argument::excerpt(.0))]
    ArgName(String),
    #[error("{} is not a valid format", crate::argument::excerpt(.0))]
    Format(String),
    #[error("the argument `{0}` is declared twice")]
    DuplicateArg(String),
    #[error("the required argument `{arg}` comes after the optional `{optional}`")]
    ArgOrder { arg: String, optional: String },
    #[error("the default of `{arg}` is not {}: {given}", crate::argument::with_article(*.hint))]
    Default { arg: String, hint: TypeHint, given: String },

    // Examples.
    #[error("the example's call is invalid: {0}")]
    ExampleArgs(ArgumentError),
    #[error("the example has both `results` and `contains`")]
    ResultsAndContains,
    #[error("the example expects nothing")]
    ExpectsNothing,
    #[error("unknown code {0}")]
    ExampleCode(String),
    #[error("{} is not a relative path of a file", crate::argument::excerpt(.0))]
    ExamplePath(String),
    #[error("{} is not an absolute http or https URL", crate::argument::excerpt(.0))]
    ExampleUrl(String),
    #[error("{} is not an HTTP method", crate::argument::excerpt(.0))]
    ExampleMethod(String),
    #[error("the time `now` has no date, time of day or time zone")]
    ExampleNow,
    #[error("{0} is not an HTTP status")]
    ExampleStatus(i64),

    // Skills.
    #[error("no front matter")]
    SkillFrontMatter,
    #[error("the front matter has no second line `---`")]
    SkillUnclosed,
    #[error("the front matter is not valid YAML: {0}")]
    SkillYaml(String),
    #[error("the front matter has no `{0}`")]
    SkillMissing(&'static str),
    #[error("{}", skill_text(.key, *.most, *.length))]
    SkillText { key: &'static str, most: usize, length: Option<usize> },
    #[error("{} is not the name of a skill", crate::argument::excerpt(.0))]
    SkillName(String),
    #[error("the skill is called `{name}`, and its folder `{}`", crate::argument::excerpt(.folder))]
    SkillFolder { name: String, folder: String },
    #[error("`metadata` is not a mapping")]
    SkillMetadata,
    #[error("`allowed-tools` is not a text of names with spaces between them")]
    SkillTools,
    #[error("larger than {} KiB", MAX_SKILL_FILE >> 10)]
    SkillFileTooLarge,
    #[error("a link that leads out of the project")]
    SkillLink,
    #[error("has more than {MAX_SKILLS} skills")]
    SkillsTooMany,
    #[error("has more than {MAX_SKILL_FILES} files or folders")]
    SkillTooMany,
    #[error("has more than {} MiB", MAX_SKILL_BYTES >> 20)]
    SkillTooLarge,
    #[error("has more than {MAX_SKILL_DEPTH} nested folders")]
    SkillTooDeep,
    #[error("its name is not UTF-8")]
    SkillFileName,
    #[error("its name cannot be the name of a program")]
    SkillScriptName,
    #[error("the program is called `{name}`, and its file `{word}.wat`")]
    SkillProgramName { name: String, word: String },
    #[error("the script has the name `{name}`, which is also the name of `{other}`")]
    SkillScriptTwice { name: String, other: String },

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
            Fault::Link => "copy the file there, or add the folder that it points to".to_owned(),
            Fault::TooLarge => {
                "read large data from a file or from `kv` when the program runs".to_owned()
            }
            Fault::NotUtf8(_) => "save the file as UTF-8".to_owned(),
            Fault::Duplicate { .. } => "both files are left out; rename one of the programs, or \
                                        move it to a folder that is added later"
                .to_owned(),
            Fault::Shadows { name } => {
                format!(
                    "rename the program, or add `replaces = \"{name}\"` to use it in place of the \
                     built-in one"
                )
            }
            Fault::ReplacesNothing(_) => {
                "remove the key `replaces`, or correct its name and the program's".to_owned()
            }
            Fault::ReplacesOther { name, .. } => {
                format!(
                    "a program replaces the built-in one of its own name: `replaces = \"{name}\"`"
                )
            }
            Fault::NoFrontMatter { later: Some(line) } => {
                format!("it starts at line {line}, after the body; move it to the top")
            }
            Fault::NoFrontMatter { later: None } => "start the file with TOML in lines that start \
                                                     with `;;;`, at least `name` and `description`"
                .to_owned(),
            Fault::Toml(_) => "every line before the body that starts with `;;;` is TOML; start a \
                               comment with `;;`"
                .to_owned(),
            Fault::UnknownKey { key, known, top } => unknown_key(key, known, *top)?,
            Fault::UnknownHint { hint, known } => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let nearest = nearest::key(hint, &names)?;
                format!("did you mean `{nearest}`? the types are {}", known.join(", "))
            }
            Fault::NoBody => "write the program after the lines that start with `;;;`".to_owned(),
            Fault::Name(_) => crate::name::InvalidName.to_string(),
            Fault::Uses(_) => "write the part before the dot of a host function's name, such as \
                               \"http\""
                .to_owned(),
            Fault::Grant { .. } => "write a rule, such as \"host:api.example.com\", or \
                                    \"secret:NAME\""
                .to_owned(),
            Fault::ZeroTimeout => {
                "set a number of milliseconds above 0, or remove the key".to_owned()
            }
            Fault::ArgName(_) => "use a lowercase letter followed by lowercase letters, digits \
                                  and `_`, at most 64 characters"
                .to_owned(),
            Fault::Format(_) => format!(
                "use 1 to {MAX_FORMAT} characters on one line, such as \"lines\" or \"int from 1\""
            ),
            Fault::ArgOrder { arg, .. } => {
                format!("give `{arg}` a default, or move it before the optional arguments")
            }
            Fault::Default { hint: TypeHint::String, .. } => "write it in quotes".to_owned(),
            Fault::ExampleArgs(error) => error.hint(),
            Fault::ResultsAndContains => "`results` lists the whole results, `contains` lists \
                                          texts that occur in them; keep one of the two"
                .to_owned(),
            Fault::ExpectsNothing => {
                "add `results`, `contains`, `code`, `reason`, `files_after` or `kv_after`"
                    .to_owned()
            }
            Fault::ExampleCode(_) => {
                let names: Vec<&str> = Code::ALL.iter().filter_map(|c| c.name()).collect();
                format!("use a number or one of {}", names.join(", "))
            }
            Fault::ExamplePath(_) => "write it relative to the top of the run's files, such as \
                                      \"notes/a.txt\""
                .to_owned(),
            Fault::ExampleNow => {
                "write it as TOML does, such as now = 2026-03-01T12:00:00Z".to_owned()
            }
            Fault::ExampleStatus(_) => "a status is between 100 and 599".to_owned(),
            Fault::SkillFrontMatter | Fault::SkillUnclosed | Fault::SkillMissing(_) => {
                "begin the file with YAML between two lines `---`, at least `name` and \
                 `description`"
                    .to_owned()
            }
            Fault::SkillYaml(_) => {
                "write a value that contains `: ` or ` #` in quotes, and use no \
                                    aliases"
                    .to_owned()
            }
            Fault::SkillName(_) => format!(
                "use 1 to {} lowercase letters, digits and single hyphens between them",
                MAX_SKILL_NAME
            ),
            Fault::SkillFolder { .. } => "give both the same name".to_owned(),
            Fault::SkillFileTooLarge => {
                "move parts of the instructions to files in `references`".to_owned()
            }
            Fault::SkillLink => "copy the skill to that place".to_owned(),
            Fault::SkillsTooMany => "remove some, or divide them over two folders".to_owned(),
            Fault::SkillTooMany | Fault::SkillTooLarge | Fault::SkillTooDeep => {
                "the skill is left out; remove files from it".to_owned()
            }
            Fault::SkillScriptName => "put it directly into `scripts`, and use lowercase letters, \
                                       digits, `_` and `-`"
                .to_owned(),
            Fault::SkillProgramName { .. } => "give both the same name".to_owned(),
            Fault::SkillScriptTwice { .. } => {
                "the other one is used; rename one of them".to_owned()
            }
            Fault::Program { hint, .. } => hint.clone()?,
            Fault::Undeclared(name) => format!("add \"{name}\" to `uses`"),
            Fault::Unused(name) => format!("remove \"{name}\" from `uses`"),
            _ => return None,
        })
    }
}

/// Describes a value of a skill's front matter that is not a text, or has another length than it may
/// have.
fn skill_text(key: &str, most: usize, length: Option<usize>) -> String {
    match (length, most) {
        (None, _) => format!("`{key}` is not a text"),
        (Some(_), usize::MAX) => format!("`{key}` is empty"),
        (Some(length), most) => {
            format!("`{key}` has {length} characters, and 1 to {most} are allowed")
        }
    }
}

/// The keys that apply to the whole program. TOML treats keys that follow a table header as keys of
/// that table.
const TOP: [&str; 11] = [
    "returns",
    "result",
    "uses",
    "grants",
    "version",
    "replaces",
    "tags",
    "exclusive",
    "silent",
    "whole",
    "timeout_ms",
];

fn unknown_key(key: &str, known: &[String], top: bool) -> Option<String> {
    if !top && TOP.contains(&key) {
        return Some(format!("`{key}` belongs to the program; move it before the first `[[…]]`"));
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let nearest = nearest::key(key, &names)?;
    Some(format!("did you mean `{nearest}`? the keys here are {}", known.join(", ")))
}
