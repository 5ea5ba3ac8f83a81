//! The text dialect: one call in the text, its observation as the user's next message.

use super::arguments::{self, Meant};
use super::{Intent, ParsedAnswer, PlannedCall, leaked};
use crate::{
    call::Call,
    function::ProgramFunction,
    mark::Nonce,
    message::{FunctionCall, Message, Role},
    observation::{self, Output},
    reader::{Action, Note, Read, Reading, read_call, read_repair},
    state::{ModelAnswer, Purpose},
};

pub(super) fn read(answer: &ModelAnswer, purpose: Purpose, programs: &[ProgramFunction]) -> ParsedAnswer {
    if !answer.calls.is_empty() {
        return called(answer, &answer.calls, programs);
    }
    let reading = match read_call(&answer.text) {
        Read::Called(reading) => return of_reading(answer, reading, true),
        Read::Uncalled(Reading { thought, action: Action::Response { text }, .. })
            if let Some(found) = leaked::find(&text, programs) =>
        {
            let answer = ModelAnswer { text: thought.or(found.before).unwrap_or_default(), ..answer.clone() };
            let mut said = called(&answer, &found.calls, programs);
            said.is_whole &= found.is_whole;
            return said;
        }
        Read::Uncalled(reading) if purpose == Purpose::Repair => read_repair(reading),
        Read::Uncalled(reading) => reading,
    };
    of_reading(answer, reading, false)
}

/// What a reading of the text says. Without a call nothing tells whether the text came to its end.
pub(super) fn of_reading(answer: &ModelAnswer, reading: Reading, is_called: bool) -> ParsedAnswer {
    let Reading { thought, action, notes, said } = reading;
    let open = [Note::UnclosedCall, Note::UnclosedFence, Note::UnclosedString];
    let is_whole = (is_called || !notes.is_empty()) && !notes.iter().any(|note| open.contains(note));
    let is_bare = notes.contains(&Note::BareProgram);
    let (wish, said) = match action {
        Action::Response { text } => (Intent::Answer(text), said),
        Action::Wat { body, args } => {
            let call = Call::Wat { body, args };
            let said = if is_bare { written(&call) } else { said };
            (Intent::Calls(vec![PlannedCall::of(call)]), said)
        }
        Action::Catalog { name, args } => (Intent::Calls(vec![PlannedCall::of(Call::Catalog { name, args })]), said),
    };
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = notes.iter().map(ToString::to_string).collect();
    ParsedAnswer { thought, wish, message: Message::assistant(said), notes, is_whole }
}

/// What the first call of functions says. The others are not carried out.
fn called(answer: &ModelAnswer, calls: &[FunctionCall], programs: &[ProgramFunction]) -> ParsedAnswer {
    let thought = Some(answer.text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    let before = thought.as_deref().map(|thought| format!("{thought}\n")).unwrap_or_default();
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = if calls.len() > 1 { vec![Note::DroppedAfterCall.to_string()] } else { Vec::new() };
    let Some(call) = calls.first() else {
        return ParsedAnswer {
            thought,
            wish: Intent::Answer(String::new()),
            message: Message::assistant(before),
            notes,
            is_whole: true,
        };
    };
    let (meant, is_whole) = arguments::meant(&call.name, &call.arguments, programs);
    let (wish, said) = match meant {
        Meant::Done(text) => {
            let said = before + &response(&text);
            (Intent::Answer(text), said)
        }
        Meant::Run(planned) => {
            let said = before + &written(&planned.call);
            (Intent::Calls(vec![planned]), said)
        }
    };
    ParsedAnswer { thought, wish, message: Message::assistant(said), notes, is_whole }
}

pub(super) fn observed(nonce: &Nonce, step: u32, said: Message, outputs: &[Output], notes: &[String]) -> Vec<Message> {
    vec![said, Message::user(observation::message(nonce, step, outputs, notes))]
}

/// Writes an answer as one that makes these calls, where it was no more than a program without a call.
pub(super) fn said_with(said: Message, planned: &[PlannedCall]) -> Message {
    match planned {
        [PlannedCall { call: call @ Call::Wat { body, .. }, .. }]
            if said.content == written(&Call::Wat { body: body.clone(), args: Vec::new() }) =>
        {
            Message::assistant(written(call))
        }
        _ => said,
    }
}

/// Writes a call as the prompt asks for it.
fn written(call: &Call) -> String {
    let quoted = |text: &String| serde_json::Value::from(text.as_str()).to_string();
    let args: String = call.args().iter().map(|arg| format!(", {}", quoted(arg))).collect();
    match call {
        Call::Wat { body, .. } => format!("ToolCall::Wat(```wat\n{body}\n```{args})"),
        Call::Catalog { name, .. } => format!("ToolCall::Catalog({}{args})", quoted(name)),
    }
}

fn response(text: &str) -> String {
    format!("ToolCall::Response(\"\"\"\n{text}\n\"\"\")")
}

/// Writes calls of functions and their results as texts.
pub(super) fn spelled_out(message: Message) -> Message {
    let Message { role, content, calls, answers } = message;
    if role == Role::Tool || answers.is_some() {
        return Message::user(content);
    }
    if calls.is_empty() {
        return Message { role, content, calls, answers };
    }
    let call = |FunctionCall { name, arguments, .. }: &FunctionCall| match arguments::meant(name, arguments, &[]).0 {
        Meant::Run(planned) => written(&planned.call),
        Meant::Done(text) => response(&text),
    };
    let calls: Vec<String> = calls.iter().map(call).collect();
    let gap = if content.is_empty() { "" } else { "\n" };
    Message::assistant(format!("{content}{gap}{}", calls.join("\n")))
}
