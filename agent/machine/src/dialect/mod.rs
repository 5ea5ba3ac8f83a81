//! Dialects: the forms in which a model calls programs and receives their results.
//!
//! In the *text* dialect, the answer's text contains a call, and the observation is the next user
//! message. In the *native* dialect, the model calls the functions offered to it, and the result of
//! each call is a separate message. In the *plain* dialect, the model calls nothing: its answer is
//! the final answer. The agent's loop is independent of the dialect: it calls [`Dialect::read`] to
//! get an answer's intent, and [`Dialect::observation`] to get an observation's messages.
//!
//! The text dialect and the native dialect also read answers in each other's form, because models
//! mix them up.

mod arguments;
pub(crate) mod leftover;
mod native;
mod plain;
mod text;

use serde::{Deserialize, Serialize};

pub(crate) use self::arguments::{ANSWER_FIELDS, function_action, is_done, is_known};

use crate::{
    call::Call,
    fix::FailedProgram,
    fix::{self, FixText, WrittenProgram},
    function::ProgramFunction,
    mark::Nonce,
    message::{FunctionCall, Message, Role},
    observation::Output,
    reader,
    request::{Dialect, ModelAnswer, Purpose},
};

/// The placeholder that replaces a failed program in the model's own answer. The program itself is
/// shown in the request to correct it.
const SHOWN_BELOW: &str = ";; your program, which is shown below with line numbers";

/// The context in which an answer is read.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) purpose: Purpose,
    /// The current step, counted from 1.
    pub(crate) step: u32,
    pub(crate) programs: &'a [ProgramFunction],
    /// The last program that failed. A fix changes this program.
    pub(crate) failed: Option<&'a WrittenProgram>,
}

/// The parsed content of an answer.
pub(crate) struct ParsedAnswer {
    /// The model's reason for its action.
    pub(crate) thought: Option<String>,
    pub(crate) intent: Intent,
    /// The answer as it is recorded in the conversation.
    pub(crate) message: Message,
    /// Notes for the model about the form of its answer.
    pub(crate) notes: Vec<String>,
    /// The function calls that passed the final answer as an argument.
    pub(crate) done: Vec<Call>,
    /// If true, the calls or the final answer are complete. A truncated answer can be complete if
    /// only text after its call is missing.
    pub(crate) is_complete: bool,
}

/// The action that the model requests.
pub(crate) enum Intent {
    /// The calls to run or refuse. There is at least one.
    Calls(Vec<PlannedCall>),
    /// The answer that ends the run.
    Answer(String),
}

/// A call that the model requested. It is either run or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedCall {
    pub(crate) call: Call,
    /// The reason for refusing the call, or `None` if it is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

impl PlannedCall {
    fn new(call: Call) -> Self {
        Self { call, refused: None }
    }

    /// Returns a call that runs the last failed program with a fix applied, or a refused call if
    /// the fix cannot be applied.
    fn fixed(dialect: Dialect, failed: Option<&WrittenProgram>, texts: &[FixText]) -> Self {
        let Some(WrittenProgram { body, args }) = failed else {
            let why = format!(
                "there is no failed program to fix, so nothing was run\nhint: write the whole \
                 program with {}",
                dialect.wat()
            );
            return Self::refused(Call::Wat { body: String::new(), args: Vec::new() }, why);
        };
        let (args, fixed) = (args.clone(), fix::apply(body, texts));
        match fixed {
            Ok(body) => Self::new(Call::Wat { body, args }),
            Err(why) => Self::refused(Call::Wat { body: body.clone(), args }, why),
        }
    }

    /// Refuses the call because the answer was truncated and part of the call may be missing.
    pub(crate) fn truncated(self) -> Self {
        let why = "nothing was run: the answer was cut off before its end, in the middle of the \
                   call; write a shorter program, or do it in several steps";
        Self { refused: self.refused.or_else(|| Some(why.to_owned())), ..self }
    }

    fn refused(call: Call, why: impl Into<String>) -> Self {
        Self { call, refused: Some(why.into()) }
    }
}

impl Dialect {
    /// Reads an answer. Never fails.
    pub(crate) fn read(self, answer: &ModelAnswer, context: Context<'_>) -> ParsedAnswer {
        match self {
            Self::Text => text::read(answer, context),
            Self::Native => native::read(answer, context),
            Self::Plain => plain::read(answer),
        }
    }

    /// Returns the messages of a step: the model's answer, and the outputs of its calls in order.
    pub(crate) fn observation(
        self,
        nonce: &Nonce,
        step: u32,
        answer: Message,
        outputs: &[Output],
        notes: &[String],
    ) -> Vec<Message> {
        match self {
            Self::Text | Self::Plain => text::observation(nonce, step, answer, outputs, notes),
            Self::Native => native::observation(nonce, step, answer, outputs, notes),
        }
    }

    /// Returns the answer whose program does not compile, followed by a request to correct the
    /// program. Only the request shows the program.
    pub(crate) fn repair(
        self,
        failed: &FailedProgram,
        request: String,
        programs: &[ProgramFunction],
    ) -> Vec<Message> {
        let FailedProgram { answer, args, .. } = failed;
        let call = Call::Wat { body: SHOWN_BELOW.to_owned(), args: args.clone() };
        match answer.calls.first() {
            Some(first) => {
                let calls = vec![function_call(first.id.clone(), &call, programs)];
                let result = Message::tool(first.id.clone(), request);
                vec![Message { calls, ..answer.clone() }, result]
            }
            None => {
                let thought = reader::read(&answer.content).thought;
                let content = text::with_thought(thought.as_deref(), &call).into();
                vec![Message { content, ..answer.clone() }, Message::user(request)]
            }
        }
    }

    /// Replaces the calls in an answer with the planned calls.
    pub(crate) fn rewrite_calls(
        self,
        answer: Message,
        planned: &[PlannedCall],
        programs: &[ProgramFunction],
    ) -> Message {
        match self {
            Self::Text | Self::Plain => text::rewrite_calls(answer, planned),
            Self::Native => native::rewrite_calls(answer, planned, programs),
        }
    }

    /// Translates the messages of a conversation to this dialect. Except in the native dialect,
    /// function calls become text, because an endpoint rejects messages with function calls if the
    /// request offers no functions.
    pub(crate) fn translate(self, conversation: Vec<Message>) -> Vec<Message> {
        match self {
            Self::Text | Self::Plain => {
                conversation.into_iter().map(text::without_functions).collect()
            }
            Self::Native => conversation,
        }
    }

    /// Returns the syntax for running an inline program, as shown in requests to the model.
    pub(crate) fn wat(self) -> &'static str {
        match self {
            Self::Text | Self::Plain => "ToolCall::Wat(…)",
            Self::Native => "the function `wat`",
        }
    }

    /// Returns the syntax of a fix, as shown in requests to the model.
    pub(crate) fn fix(self) -> &'static str {
        match self {
            Self::Text | Self::Plain => "ToolCall::Fix(\"old text\", \"new text\", …)",
            Self::Native => "the function `fix`",
        }
    }

    /// Returns the required form of an answer to a request that allows no calls.
    pub(crate) fn last_answer(self) -> &'static str {
        match self {
            Self::Text => "ToolCall::Response(\"\"\"…\"\"\")",
            Self::Native | Self::Plain => "plain text and without a function call",
        }
    }

    /// Returns the request that follows an answer with a mark of the model's own format.
    pub(crate) fn answer_with_leftovers(self, mark: &str) -> String {
        let call = match self {
            Self::Text => "write it as ToolCall::Catalog(…) or ToolCall::Wat(…)",
            Self::Native | Self::Plain => "call the function",
        };
        format!(
            "Your last answer was not used: it contains `{mark}`, which looks like a call or a \
             channel that was not recognized. If you meant a call, {call}. If it was the final \
             answer, write it again without such marks, or with the marks in backticks if the user \
             should see them."
        )
    }

    /// Returns the request that follows an empty answer.
    pub(crate) fn empty_answer(self) -> &'static str {
        match self {
            Self::Text => {
                "Your answer was empty. Make exactly one call: ToolCall::Catalog(…), \
                 ToolCall::Wat(…) or, if you are done, ToolCall::Response(…)."
            }
            Self::Native => {
                "Your answer was empty. Call a function, or `done` with the final answer if you \
                 have what you need."
            }
            Self::Plain => "Your answer was empty. Answer the user's message.",
        }
    }
}

/// Appends text to a request. If the last message is a user message, extends it, because chat
/// templates require alternating roles.
pub(crate) fn add(messages: &mut Vec<Message>, text: &str) {
    match messages.last_mut() {
        Some(last) if last.role == Role::User => {
            last.content.push_str("\n\n");
            last.content.push_str(text);
        }
        _ => messages.push(Message::user(text)),
    }
}

/// Converts a call to a function call of the native dialect.
fn function_call(id: String, call: &Call, programs: &[ProgramFunction]) -> FunctionCall {
    let (name, arguments) = arguments::from_call(call, programs);
    FunctionCall { id, name, arguments: arguments.into() }
}
