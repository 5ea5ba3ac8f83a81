//! The text dialect: the answer's text contains one call, and the observation is the next user
//! message.

use super::arguments::{self, Meaning};
use super::{Context, Intent, ParsedAnswer, PlannedCall};
use crate::{
    call::Call,
    fix::FixText,
    function::DONE,
    mark::Nonce,
    message::{FunctionCall, Message, Role},
    observation::{self, Output},
    reader::{Action, Note, ReadResult, Reading, read_call, read_repair},
    request::{Dialect, ModelAnswer, Purpose},
};

pub(super) fn read(answer: &ModelAnswer, context: Context<'_>) -> ParsedAnswer {
    let dialect = Dialect::Text;
    if !answer.calls.is_empty() {
        return called(answer, &answer.calls, context);
    }
    let reading = match read_call(&answer.text, context.programs) {
        ReadResult::Called(reading) => {
            return from_reading(answer, reading, true, (dialect, context));
        }
        ReadResult::Functions(found) => {
            let answer = ModelAnswer { text: found.thought.unwrap_or_default(), ..answer.clone() };
            let mut parsed = called(&answer, &found.calls, context);
            parsed.is_complete &= found.is_complete;
            if found.is_followed && parsed.notes.is_empty() {
                parsed.notes.push(Note::DroppedAfterCall.to_string());
            }
            return parsed;
        }
        ReadResult::Uncalled(reading) if context.purpose == Purpose::Repair => read_repair(reading),
        ReadResult::Uncalled(reading) => reading,
    };
    from_reading(answer, reading, false, (dialect, context))
}

/// Converts a reading to a parsed answer. A plain-text answer is not marked as complete, because
/// its text may have been truncated.
pub(super) fn from_reading(
    answer: &ModelAnswer,
    reading: Reading,
    is_called: bool,
    (dialect, context): (Dialect, Context<'_>),
) -> ParsedAnswer {
    let Reading { thought, action, notes, retained } = reading;
    let open = [Note::UnclosedCall, Note::UnclosedFence, Note::UnclosedString];
    let is_complete =
        (is_called || !notes.is_empty()) && !notes.iter().any(|note| open.contains(note));
    let is_bare = notes.contains(&Note::BareProgram);
    let (intent, message) = match action {
        Action::Response { text } => (Intent::Answer(text), retained),
        Action::Wat { body, args } => {
            let call = Call::Wat { body, args };
            let message = if is_bare { write_call(&call) } else { retained };
            (Intent::Calls(vec![PlannedCall::new(call)]), message)
        }
        Action::Catalog { name, args, names } => {
            (Intent::Calls(vec![PlannedCall::new(Call::Catalog { name, args, names })]), retained)
        }
        Action::Fix { texts } => {
            let planned = PlannedCall::fixed(dialect, context.failed, &texts);
            // The conversation records the fixed program, which is the one that is run.
            let message = match planned.refused {
                None => with_thought(thought.as_deref(), &planned.call),
                Some(_) => retained,
            };
            (Intent::Calls(vec![planned]), message)
        }
    };
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = notes.iter().map(ToString::to_string).collect();
    let (message, done) = (Message::assistant(message), Vec::new());
    ParsedAnswer { thought, intent, message, notes, done, is_complete }
}

/// Reads an answer that contains function calls. Only the first call is run.
fn called(answer: &ModelAnswer, calls: &[FunctionCall], context: Context<'_>) -> ParsedAnswer {
    let thought = Some(answer.text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    let before = thought.as_deref().map(|thought| format!("{thought}\n")).unwrap_or_default();
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = if calls.len() > 1 { vec![Note::DroppedAfterCall.to_string()] } else { Vec::new() };
    let Some(call) = calls.first() else {
        return ParsedAnswer {
            thought,
            intent: Intent::Answer(String::new()),
            message: Message::assistant(before),
            notes,
            done: Vec::new(),
            is_complete: true,
        };
    };
    let (meaning, is_complete) =
        arguments::interpret(&call.name, &call.arguments, context.programs);
    let mut done = Vec::new();
    let (intent, message) = match meaning {
        Meaning::Done(text) => {
            let message = before + &write_response(&text);
            done.push(Call::catalog(DONE, vec![text.clone()]));
            (Intent::Answer(text), message)
        }
        Meaning::Run(planned) => {
            let message = before + &write_call(&planned.call);
            (Intent::Calls(vec![planned]), message)
        }
        Meaning::Fix(texts) => {
            let planned = PlannedCall::fixed(Dialect::Text, context.failed, &texts);
            let written = match planned.refused {
                None => write_call(&planned.call),
                Some(_) => write_fix(&texts),
            };
            (Intent::Calls(vec![planned]), before + &written)
        }
    };
    let message = Message::assistant(message);
    ParsedAnswer { thought, intent, message, notes, done, is_complete }
}

/// Returns the answer, followed by one message with all results.
pub(super) fn observation(
    nonce: &Nonce,
    step: u32,
    answer: Message,
    outputs: &[Output],
    notes: &[String],
) -> Vec<Message> {
    vec![answer, Message::user(observation::message(nonce, step, outputs, notes))]
}

/// If an answer consists of the planned program without its arguments, adds the planned arguments.
/// Returns any other answer unchanged.
pub(super) fn rewrite_calls(answer: Message, planned: &[PlannedCall]) -> Message {
    match planned {
        [PlannedCall { call: call @ Call::Wat { body, .. }, .. }]
            if answer.content
                == write_call(&Call::Wat { body: body.clone(), args: Vec::new() }) =>
        {
            Message { content: write_call(call).into(), ..answer }
        }
        _ => answer,
    }
}

/// Writes an answer that contains a call, preceded by a thought if there is one.
pub(super) fn with_thought(thought: Option<&str>, call: &Call) -> String {
    match thought {
        Some(thought) => format!("<reasoning>{thought}</reasoning>\n{}", write_call(call)),
        None => write_call(call),
    }
}

/// Returns a string as a JSON string in double quotes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a call in the syntax that the prompt specifies.
fn write_call(call: &Call) -> String {
    let arg = |(name, arg): (Option<&str>, &str)| match name {
        Some(name) => format!(", {}={}", keyword(name), quoted(arg)),
        None => format!(", {}", quoted(arg)),
    };
    let args: String = call.named_args().map(arg).collect();
    match call {
        Call::Wat { body, .. } => format!("ToolCall::Wat(```wat\n{body}\n```{args})"),
        Call::Catalog { name, .. } => format!("ToolCall::Catalog({}{args})", quoted(name)),
    }
}

/// Returns a name as the text dialect writes it before `=`. The catalog finds the parameter by its
/// letters and digits.
fn keyword(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn write_fix(texts: &[FixText]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(&text.text)).collect();
    format!("ToolCall::Fix({})", texts.join(", "))
}

fn write_response(text: &str) -> String {
    format!("ToolCall::Response(\"\"\"\n{text}\n\"\"\")")
}

/// Rewrites function calls and their results as text.
pub(super) fn without_functions(message: Message) -> Message {
    if message.calls.is_empty() && message.role != Role::Tool && message.answers.is_none() {
        return message;
    }
    let Message { role, content, calls, answers, provider, .. } = message;
    if role == Role::Tool || answers.is_some() {
        return Message::user(content);
    }
    let call = |FunctionCall { name, arguments, .. }: &FunctionCall| match arguments::interpret(
        name,
        arguments,
        &[],
    )
    .0
    {
        Meaning::Run(planned) => write_call(&planned.call),
        Meaning::Fix(texts) => write_fix(&texts),
        Meaning::Done(text) => write_response(&text),
    };
    let calls: Vec<String> = calls.iter().map(call).collect();
    let gap = if content.is_empty() { "" } else { "\n" };
    let content = format!("{content}{gap}{}", calls.join("\n"));
    Message { provider, ..Message::assistant(content) }
}
