//! The parts of the system prompt: plain data that the caller collects from the host's settings and
//! from the catalog.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::request::Dialect;

/// The system prompt.
///
/// ```
/// use wattle_machine::SystemPrompt;
///
/// let prompt = SystemPrompt { stable: "You run programs.\n".into(), rest: "Be brief.".into() };
/// assert_eq!(prompt.to_string(), "You run programs.\nBe brief.");
/// assert_eq!(SystemPrompt::from("x").stable, "x");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PromptForm", into = "PromptForm")]
pub struct SystemPrompt {
    /// The part that is the same in all sessions of an agent. Providers can cache it.
    pub stable: String,
    /// The part that may differ between sessions.
    pub rest: String,
}

impl SystemPrompt {
    /// Converts the prompt to the first message of a conversation.
    pub(crate) fn into_message(self) -> Message {
        Message { stable: self.stable.len(), ..Message::system(self.stable + &self.rest) }
    }
}

impl fmt::Display for SystemPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stable)?;
        f.write_str(&self.rest)
    }
}

impl From<&str> for SystemPrompt {
    fn from(stable: &str) -> Self {
        Self { stable: stable.to_owned(), rest: String::new() }
    }
}

/// The serialized form of the prompt: a plain string if the whole prompt is stable, and an object
/// otherwise.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PromptForm {
    Text(String),
    Parts { stable: String, rest: String },
}

impl From<PromptForm> for SystemPrompt {
    fn from(form: PromptForm) -> Self {
        match form {
            PromptForm::Text(stable) => Self { stable, rest: String::new() },
            PromptForm::Parts { stable, rest } => Self { stable, rest },
        }
    }
}

impl From<SystemPrompt> for PromptForm {
    fn from(SystemPrompt { stable, rest }: SystemPrompt) -> Self {
        if rest.is_empty() { Self::Text(stable) } else { Self::Parts { stable, rest } }
    }
}

/// All parts of the system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// The form in which the model calls programs.
    pub dialect: Dialect,
    /// The granted capabilities, in display order.
    pub capabilities: Vec<CapabilityPart>,
    /// The capabilities that are not granted.
    pub withheld: Vec<WithheldCapability>,
    /// The catalog programs that the prompt lists.
    pub programs: ProgramList,
    /// The names of the error codes that a program can receive or exit with, in display order.
    pub codes: Vec<String>,
    /// The limits on a program and a run.
    pub limits: Limits,
    /// Text that the deployment adds, such as a role description or house rules.
    pub preamble: Option<String>,
    /// Memory items that all sessions of the agent share.
    pub memory: Vec<String>,
    /// The skills that the prompt lists.
    pub skills: SkillList,
    /// The guidance files of the workdir's project, nearest last. They may differ between sessions.
    pub guidance: Vec<GuidanceFile>,
    /// Lines that differ between sessions: the date, budgets and memory. They come last, so that
    /// the rest of the prompt is identical byte for byte and providers can cache it.
    pub volatile: Vec<String>,
}

/// The catalog programs in a prompt. Each list is in display order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramList {
    /// The built-in programs.
    pub built_in: Vec<ProgramLine>,
    /// The deployment's own programs.
    pub own: Vec<ProgramLine>,
    /// The families of the deployment's programs, if these are too numerous to describe.
    pub families: Vec<ProgramFamily>,
    /// The programs of these families that match the session's first message, most relevant first. The
    /// prompt describes only as many as fit within a small fraction of its length.
    pub matching: Vec<ProgramLine>,
}

/// Programs whose names begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFamily {
    /// The common beginning of the names, such as `github.`, or empty for the programs without family.
    pub prefix: String,
    /// The programs' names without the common beginning.
    pub names: Vec<String>,
}

/// The skills in a prompt. Each list is in display order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillList {
    /// The skills to describe.
    pub described: Vec<SkillLine>,
    /// The names of the remaining skills, which are too numerous to describe.
    pub named: Vec<String>,
    /// The skills in `named` that match the session's first message, most relevant first. The
    /// prompt describes only as many as fit within a small fraction of its length.
    pub matching: Vec<SkillLine>,
}

/// A one-line description of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillLine {
    /// The skill's name.
    pub name: String,
    /// The description, which says what the skill is for and when to use it.
    pub description: String,
}

/// A file with guidance for agents, such as `AGENTS.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidanceFile {
    /// The path, as the prompt shows it.
    pub path: String,
    /// The text, or its beginning.
    pub text: String,
    /// The reason why the text is not whole, if it is not.
    pub cut: Option<String>,
    /// If true, the text is instructions from the operator. Otherwise, it is data.
    pub is_trusted: bool,
}

/// A capability and its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityPart {
    /// The capability's name.
    pub name: String,
    /// A sentence about all of the capability's functions. May be empty.
    pub about: String,
    /// The functions to describe, in display order.
    pub functions: Vec<FunctionLine>,
    /// Names of rarely used functions, which the prompt lists without descriptions. `help`
    /// describes them.
    pub rare: Vec<String>,
}

impl CapabilityPart {
    /// Returns true if the prompt lists at least one function of the capability.
    pub fn is_shown(&self) -> bool {
        !self.functions.is_empty() || !self.rare.is_empty()
    }
}

/// A one-line description of a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionLine {
    /// The syntax of a call, such as `(http.get? url)`.
    pub usage: String,
    /// Details that the syntax does not show. May be empty.
    pub about: String,
}

/// A capability that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldCapability {
    /// The capability's name, such as `fs`.
    pub capability: String,
    /// The reason why the capability is not granted, or the setting that grants it. May be empty.
    pub why: String,
}

/// A one-line description of a catalog program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLine {
    /// The program's name.
    pub name: String,
    /// The parameters, in order.
    pub args: Vec<ArgLine>,
    /// The shape of the result, such as `[{id, title}]`, if it is a JSON value.
    pub result: Option<String>,
    /// A one-sentence description. May be empty if the name is self-explanatory.
    pub description: String,
}

/// A parameter of a catalog program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgLine {
    /// The parameter's name.
    pub name: String,
    /// The parameter's type or format, such as `string` or `int from 1`.
    pub type_hint: String,
    /// If true, the parameter has a default value and may be omitted.
    pub optional: bool,
}

/// The limits on a program and a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory of a program, in MiB.
    pub memory_mib: u32,
    /// Maximum duration of a program, in seconds.
    pub program_secs: u32,
    /// Maximum length of a call's output in the conversation, in characters.
    pub observation_limit: usize,
    /// Maximum number of steps per run, or 0 for no limit.
    pub max_steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_mib: 64, program_secs: 150, observation_limit: 4_000, max_steps: 12 }
    }
}
