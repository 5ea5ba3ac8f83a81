//! Contributions that the programs of an agent's traits make to a run before a request to the
//! model.
//!
//! A *build* program runs once, before the first step. Its result extends the system prompt and the
//! list of programs that the model may call. A *step* program runs before each step, for its side
//! effects. A *prompt* program also runs before each step. If its result differs from its previous
//! result, the new result is appended to the conversation as a note. Notes are never changed
//! afterwards, so each request has the previous request as a prefix.

use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Execution},
    function::ProgramFunction,
    mark::{Nonce, escape_marks},
    message::Message,
    recall,
};

/// Maximum length of the text that one program contributes, in characters.
const MAX_LENGTH: usize = 4_000;

/// A program that belongs to one of the agent's traits. The host runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraitProgram {
    /// The name by which the program is called, such as `house_style.prompt`.
    pub program: String,
    /// The program's purpose, which determines when it runs.
    pub purpose: TraitPurpose,
    /// If true, the program's only argument is the recent conversation. Otherwise, the program has
    /// no arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_conversation: bool,
    /// If true, the result of a build program may add programs and agents, even if it can contain
    /// text from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_add: bool,
}

/// The purpose of a trait's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraitPurpose {
    /// The program runs once. Its result extends the system prompt and the list of programs.
    Build,
    /// The program runs before each step, for its side effects.
    Step,
    /// The program runs before each step and returns text for the model.
    Prompt,
}

/// The outcome of running a trait's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// The outcome of the call.
    pub execution: Execution,
    /// A build program's addition, or the reason why its result cannot be used. `None` for other
    /// programs, and for a build program that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addition: Option<Result<Addition, String>>,
}

/// The text, programs and agents that a build program adds to a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Addition {
    /// Text for the system prompt.
    pub prompt: String,
    /// The names of catalog programs.
    pub tools: Vec<String>,
    /// The names of agents to which the run may delegate.
    pub delegates: Vec<String>,
    /// The functions through which the model may call these programs and agents.
    pub programs: Vec<ProgramFunction>,
}

impl TraitProgram {
    /// Returns the call that runs the program.
    pub(crate) fn call(&self, conversation: &[Message], nonce: &Nonce) -> Call {
        let args = if self.reads_conversation {
            vec![recall::excerpt(conversation, nonce)]
        } else {
            Vec::new()
        };
        Call::catalog(&self.program, args)
    }
}

impl Contribution {
    /// Returns the text that a prompt program contributes.
    ///
    /// # Errors
    /// If the program failed. The error is the reason.
    pub(crate) fn text(&self) -> Result<String, String> {
        Ok(recall::shorten(self.execution.texts()?.join("\n").trim(), MAX_LENGTH))
    }
}

impl Addition {
    /// Returns the section of the system prompt that describes the addition.
    pub(crate) fn section(&self, describe: impl Fn(&ProgramFunction) -> String) -> String {
        let prompt = escape_marks(self.prompt.trim(), None);
        let prompt = recall::shorten(&prompt, MAX_LENGTH);
        let programs: String = self.programs.iter().map(describe).collect();
        let programs = if programs.is_empty() {
            programs
        } else {
            format!("Further programs:\n{}", programs.trim_end())
        };
        [prompt, programs]
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| format!("\n\n{part}"))
            .collect()
    }
}
