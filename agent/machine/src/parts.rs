//! What the system prompt is made from: plain data that the caller gathers from what is really there.

use crate::dialect::Dialect;

/// Gathers everything that the system prompt tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// In which form the model is to call programs.
    pub dialect: Dialect,
    /// The capabilities that are granted, in the order to show.
    pub capabilities: Vec<CapabilityPart>,
    /// The capabilities that are not granted.
    pub withheld: Vec<Withheld>,
    /// The catalog programs that are named, in any order.
    pub programs: Vec<ProgramLine>,
    /// How many further programs may be called.
    pub more_programs: usize,
    /// The error codes that a program can leave or meet, in order.
    pub codes: Vec<CodeLine>,
    /// The bounds that a program lives in.
    pub limits: Limits,
    /// What the deployment adds: a role, house rules.
    pub preamble: Option<String>,
    /// What changes from session to session (the date, budgets, memory), one line each; stands last, so that the rest
    /// stays the same byte for byte and providers can cache it.
    pub volatile: Vec<String>,
}

/// Describes a capability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityPart {
    /// Its name.
    pub name: String,
    /// What goes for all its functions; may be empty.
    pub about: String,
    /// Its functions, in the order to show.
    pub functions: Vec<FunctionLine>,
    /// The names of those that are seldom used: `help` tells the rest.
    pub seldom: Vec<String>,
}

/// Describes a host function in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionLine {
    /// How a call is written, such as `(http.get? url)`.
    pub usage: String,
    /// What a reader of that would not guess; may be empty.
    pub about: String,
}

/// Names a capability that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The capability, such as `fs`.
    pub capability: String,
    /// Why, or which setting would grant it; may be empty.
    pub why: String,
}

/// Describes a catalog program in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramLine {
    /// The name to call it by.
    pub name: String,
    /// Its arguments in order.
    pub args: Vec<ArgLine>,
    /// What it does, in one sentence; may be empty where the name tells.
    pub description: String,
}

/// Describes an argument of a catalog program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgLine {
    /// The argument's name.
    pub name: String,
    /// Its type, such as `string` or `int`.
    pub type_hint: String,
    /// Whether it has a default and may be left out.
    pub optional: bool,
}

/// Describes an error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// The name, such as `ENOENT`.
    pub name: String,
    /// What it means, in a few words.
    pub meaning: String,
}

/// Gives the bounds that a program lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A program's memory in MiB.
    pub memory_mib: u32,
    /// A program's time in seconds.
    pub program_secs: u32,
    /// How many characters of a call's output the model reads at most.
    pub observation_limit: usize,
    /// How many steps a run may take.
    pub max_steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_mib: 64, program_secs: 150, observation_limit: 4_000, max_steps: 12 }
    }
}
