//! Dialects: in which form a model says what it wants, and is told what came of it.
//!
//! In the *text* dialect a call stands in the answer's text, and its observation is the next message of the user. In the *native* one
//! the model calls functions that it was offered, and each call gets a message of its own with its result. The loop knows neither: it
//! has an answer read, and gets what is wanted; it has an observation worded, and gets messages.
//!
//! Either dialect reads what is said in the other one, since models mix them.

mod arguments;
mod json;
mod leaked;
mod native;
mod text;

use serde::{Deserialize, Serialize};

use crate::{
    call::Call,
    function::ProgramFunction,
    mark::Nonce,
    message::{FunctionCall, Message, Role},
    observation::Output,
    state::{ModelAnswer, Purpose},
};

/// Says in which form a model calls programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// By calls in its text.
    #[default]
    Text,
    /// By calling functions that it is offered.
    Native,
}

/// What was read from an answer.
pub(crate) struct ParsedAnswer {
    /// Why the model does what it does.
    pub(crate) thought: Option<String>,
    pub(crate) wish: Intent,
    /// The answer as later turns see it.
    pub(crate) message: Message,
    /// What the model is told about its answer's form.
    pub(crate) notes: Vec<String>,
    /// Whether all of what the model wanted was there; of an answer that was cut off it may not be.
    pub(crate) is_whole: bool,
}

/// What a model wants done.
pub(crate) enum Intent {
    /// Calls carried out, at least one.
    Calls(Vec<PlannedCall>),
    /// The run ended with this answer.
    Answer(String),
}

/// A call on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    pub(crate) call: Call,
    /// Why it is not carried out; `None` where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

impl PlannedCall {
    fn of(call: Call) -> Self {
        Self { call, refused: None }
    }

    /// A call that is not carried out because not all of it may be there.
    pub(crate) fn cut(self) -> Self {
        let why = "nothing was run: the answer was cut off before its end, in the middle of the call; write a shorter program, \
                   or do it in several steps";
        Self { refused: self.refused.or_else(|| Some(why.to_owned())), ..self }
    }

    fn refused(call: Call, why: impl Into<String>) -> Self {
        Self { call, refused: Some(why.into()) }
    }
}

impl Dialect {
    /// Reads an answer; never fails.
    pub(crate) fn read(
        self,
        answer: &ModelAnswer,
        purpose: Purpose,
        step: u32,
        programs: &[ProgramFunction],
    ) -> ParsedAnswer {
        match self {
            Self::Text => text::read(answer, purpose, programs),
            Self::Native => native::read(answer, purpose, step, programs),
        }
    }

    /// Words what came of a step: the answer that it began with, and the outputs of its calls in order.
    pub(crate) fn observed(
        self,
        nonce: &Nonce,
        step: u32,
        said: Message,
        outputs: &[Output],
        notes: &[String],
    ) -> Vec<Message> {
        match self {
            Self::Text => text::observed(nonce, step, said, outputs, notes),
            Self::Native => native::observed(nonce, step, said, outputs, notes),
        }
    }

    /// Asks for a corrected program in place of the one that an answer called.
    pub(crate) fn repair(self, said: Message, request: String) -> Vec<Message> {
        match said.calls.first() {
            Some(call) => {
                let result = Message::tool(call.id.clone(), request);
                vec![said, result]
            }
            None => vec![said, Message::user(request)],
        }
    }

    /// Writes an answer as one that makes these calls.
    pub(crate) fn said_with(self, said: Message, planned: &[PlannedCall], programs: &[ProgramFunction]) -> Message {
        match self {
            Self::Text => text::said_with(said, planned),
            Self::Native => native::said_with(said, planned, programs),
        }
    }

    /// Words the messages of a conversation in this dialect: an endpoint that was offered no functions takes no calls of them.
    pub(crate) fn translated(self, conversation: Vec<Message>) -> Vec<Message> {
        match self {
            Self::Text => conversation.into_iter().map(text::spelled_out).collect(),
            Self::Native => conversation,
        }
    }

    /// How the next program is given, in the words of a request.
    pub(crate) fn wat(self) -> &'static str {
        match self {
            Self::Text => "ToolCall::Wat(…)",
            Self::Native => "the function `wat`",
        }
    }

    /// How the final answer is given, in the words of a request.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::Text => "ToolCall::Response(\"\"\"…\"\"\")",
            Self::Native => "the function `done`",
        }
    }

    /// Asks again after an empty answer.
    pub(crate) fn empty_answer(self) -> &'static str {
        match self {
            Self::Text => {
                "Your answer was empty. Make exactly one call: ToolCall::Catalog(…), ToolCall::Wat(…) or, if you are done, \
                 ToolCall::Response(…)."
            }
            Self::Native => {
                "Your answer was empty. Call a function, or `done` with the final answer if you have what you need."
            }
        }
    }
}

/// Adds words to the end of a conversation that stay out of it. Chat templates want the roles to take turns.
pub(crate) fn add(messages: &mut Vec<Message>, said: &str) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            last.content.push_str("\n\n");
            last.content.push_str(said);
        }
        _ => messages.push(Message::user(said)),
    }
}

/// A call in the form of a function's.
fn function_call(id: String, call: &Call, programs: &[ProgramFunction]) -> FunctionCall {
    let (name, arguments) = arguments::written(call, programs);
    FunctionCall { id, name, arguments }
}
