//! The parts of the system prompt: plain data that the caller collects from the host's settings and
//! the catalog.

use crate::dialect::Dialect;

/// Everything that the system prompt contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// The form in which the model calls programs.
    pub dialect: Dialect,
    /// The granted capabilities, in display order.
    pub capabilities: Vec<CapabilityPart>,
    /// The capabilities that are not granted.
    pub withheld: Vec<WithheldCapability>,
    /// The catalog programs to list, in any order.
    pub programs: Vec<ProgramLine>,
    /// Number of further programs, which are not listed.
    pub more_programs: usize,
    /// The error codes that a program can receive or exit with, in display order.
    pub codes: Vec<CodeLine>,
    /// The limits of a program.
    pub limits: Limits,
    /// Text that the deployment adds, such as a role or house rules.
    pub preamble: Option<String>,
    /// Lines that change from session to session: the date, budgets, memory. They come last, so
    /// that the rest of the prompt stays the same byte for byte and providers can cache it.
    pub volatile: Vec<String>,
}

/// A capability and its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityPart {
    /// The capability's name.
    pub name: String,
    /// A sentence about all of its functions. May be empty.
    pub about: String,
    /// The functions to describe, in display order.
    pub functions: Vec<FunctionLine>,
    /// Names of functions that are rarely used. The prompt only names them, and `help` describes
    /// them.
    pub rare: Vec<String>,
}

/// A host function, described in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionLine {
    /// The syntax of a call, such as `(http.get? url)`.
    pub usage: String,
    /// A remark on details that the syntax does not show. May be empty.
    pub about: String,
}

/// A capability that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldCapability {
    /// The capability, such as `fs`.
    pub capability: String,
    /// The reason, or the setting that would grant it. May be empty.
    pub why: String,
}

/// A catalog program, described in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLine {
    /// The program's name.
    pub name: String,
    /// The parameters in order.
    pub args: Vec<ArgLine>,
    /// A description in one sentence. May be empty if the name is enough.
    pub description: String,
}

/// A parameter of a catalog program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgLine {
    /// The parameter's name.
    pub name: String,
    /// The parameter's type, such as `string` or `int`.
    pub type_hint: String,
    /// If true, the parameter has a default and may be omitted.
    pub optional: bool,
}

/// An error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// The name, such as `ENOENT`.
    pub name: String,
    /// The meaning in a few words.
    pub meaning: String,
}

/// The limits of a program and a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory of a program, in MiB.
    pub memory_mib: u32,
    /// Maximum duration of a program, in seconds.
    pub program_secs: u32,
    /// Maximum length of a call's output in the conversation, in characters.
    pub observation_limit: usize,
    /// Maximum number of steps of a run.
    pub max_steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_mib: 64, program_secs: 150, observation_limit: 4_000, max_steps: 12 }
    }
}
