//! The native dialect: function calls, each with its own result.

use std::collections::BTreeSet;

use super::arguments::{self, Meaning};
use super::{Context, Intent, ParsedAnswer, PlannedCall, function_call, text};
use crate::{
    call::Call,
    fix::FixText,
    function::ProgramFunction,
    mark::Nonce,
    message::{FunctionCall, Message},
    observation::{self, Output},
    reader::{self, Action, ReadResult, Reading, read_call, read_repair},
    request::{Dialect, ModelAnswer, Purpose},
};

/// Maximum number of calls that are run in one turn.
const MAX_CALLS: usize = 16;

pub(super) fn read(answer: &ModelAnswer, context: Context<'_>) -> ParsedAnswer {
    if !answer.calls.is_empty() {
        let reading = reader::read(&answer.text);
        let thought = reading.thought.or(match reading.action {
            Action::Response { text } => Some(text).filter(|text| !text.is_empty()),
            Action::Wat { .. } | Action::Catalog { .. } | Action::Fix { .. } => None,
        });
        return called(answer, thought, &answer.calls, context);
    }
    match read_call(&answer.text, context.programs) {
        ReadResult::Called(reading) => in_text(answer, reading, true, context),
        ReadResult::Functions(found) => {
            let mut parsed = called(answer, found.thought, &found.calls, context);
            parsed.is_complete &= found.is_complete;
            parsed
        }
        ReadResult::Uncalled(reading) if context.purpose == Purpose::Repair => {
            in_text(answer, read_repair(reading), false, context)
        }
        ReadResult::Uncalled(reading) => in_text(answer, reading, false, context),
    }
}

/// Reads an answer in the text dialect. The call is recorded in the conversation as a function
/// call, so that the model learns the expected form.
fn in_text(
    answer: &ModelAnswer,
    reading: Reading,
    is_called: bool,
    context: Context<'_>,
) -> ParsedAnswer {
    let Context { step, programs, .. } = context;
    let parsed = text::from_reading(answer, reading, is_called, (Dialect::Native, context));
    let message = match &parsed.intent {
        Intent::Answer(text) => Message::assistant(text.clone()),
        Intent::Calls(planned) => {
            let calls = planned
                .iter()
                .map(|planned| function_call(generated_id(step, 1), &planned.call, programs))
                .collect();
            Message::calling(parsed.thought.clone().unwrap_or_default(), calls)
        }
    };
    ParsedAnswer { message, notes: Vec::new(), ..parsed }
}

/// Reads an answer that calls functions.
fn called(
    answer: &ModelAnswer,
    thought: Option<String>,
    calls: &[FunctionCall],
    Context { step, programs, failed, .. }: Context<'_>,
) -> ParsedAnswer {
    let mut is_complete = true;
    let mut meanings: Vec<(&FunctionCall, Meaning)> = Vec::new();
    for call in calls {
        let (meaning, complete) = arguments::interpret(&call.name, &call.arguments, programs);
        is_complete &= complete;
        meanings.push((call, meaning));
    }
    let content = thought.clone().unwrap_or_default();
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = Vec::new();
    if meanings.iter().all(|(_, meaning)| matches!(meaning, Meaning::Done(_))) {
        let texts = meanings.into_iter().filter_map(|(_, meaning)| match meaning {
            Meaning::Done(text) => Some(text),
            Meaning::Run(_) | Meaning::Fix(_) => None,
        });
        let mut texts: Vec<String> = texts.collect();
        // Some models write the answer as text and call `done` with an empty answer.
        if let Some(first) = texts.first_mut().filter(|text| text.is_empty()) {
            *first = content;
        }
        let text = texts.first().cloned().unwrap_or_default();
        let name = crate::function::DONE;
        let done = |text| Call::catalog(name, vec![text]);
        return ParsedAnswer {
            thought,
            intent: Intent::Answer(text.clone()),
            message: Message::assistant(text),
            notes,
            done: texts.into_iter().map(done).collect(),
            is_complete,
        };
    }
    merge_fixes(&mut meanings);
    let mut ids = BTreeSet::new();
    let (mut planned, mut calls) = (Vec::new(), Vec::new());
    for ((call, meaning), number) in meanings.into_iter().zip(1..) {
        let own = Some(call.id.clone()).filter(|id| !id.is_empty() && !ids.contains(id));
        let generated =
            || (number..).map(|number| generated_id(step, number)).find(|id| !ids.contains(id));
        let id = own.or_else(generated).unwrap_or_default();
        ids.insert(id.clone());
        let plan = match meaning {
            Meaning::Run(plan) => plan,
            Meaning::Fix(texts) => PlannedCall::fixed(Dialect::Native, failed, &texts),
            Meaning::Done(_) => PlannedCall::refused(
                Call::catalog(crate::function::DONE, Vec::new()),
                "not accepted: read the results of the other calls first, then call `done` by \
                     itself",
            ),
        };
        // The conversation must contain valid JSON, regardless of the model's output.
        calls.push(match &plan.refused {
            None => function_call(id, &plan.call, programs),
            Some(_) => FunctionCall {
                id,
                name: plain_name(&call.name),
                arguments: as_object(&call.arguments).into(),
            },
        });
        planned.push(plan);
    }
    refuse_surplus(&mut planned, programs);
    ParsedAnswer {
        thought,
        intent: Intent::Calls(planned),
        message: Message::calling(content, calls),
        notes,
        done: Vec::new(),
        is_complete,
    }
}

/// Merges all fixes of a turn into the first one, because they change the same program.
fn merge_fixes(meanings: &mut Vec<(&FunctionCall, Meaning)>) {
    let mut all: Vec<FixText> = Vec::new();
    let mut is_first = true;
    meanings.retain_mut(|(_, meaning)| {
        let Meaning::Fix(texts) = meaning else { return true };
        all.append(texts);
        std::mem::take(&mut is_first)
    });
    let first = meanings.iter_mut().find_map(|(_, meaning)| match meaning {
        Meaning::Fix(texts) => Some(texts),
        _ => None,
    });
    if let Some(texts) = first {
        *texts = all;
    }
}

/// Refuses the calls over the limit. If a turn calls an exclusive program, also refuses all other
/// calls of the turn.
fn refuse_surplus(planned: &mut [PlannedCall], programs: &[ProgramFunction]) {
    let is_exclusive = |call: &Call| {
        matches!(
            call,
            Call::Catalog { name, .. }
                if programs.iter().any(|known| known.exclusive && known.program == *name)
        )
    };
    let found = planned.iter().position(|plan| plan.refused.is_none() && is_exclusive(&plan.call));
    let name = found.and_then(|at| planned.get(at)).map(|plan| plan.call.label().to_owned());
    for (at, plan) in planned.iter_mut().enumerate().filter(|(_, plan)| plan.refused.is_none()) {
        if let (Some(found), Some(name)) = (found, &name)
            && at != found
        {
            plan.refused = Some(format!(
                "not run: `{name}` must be the only call of its turn; make this call in a \
                 separate turn"
            ));
        } else if at >= MAX_CALLS {
            plan.refused = Some(format!(
                "not run: at most {MAX_CALLS} calls are run in one turn; make this call in the \
                 next turn"
            ));
        }
    }
}

/// Replaces the calls in an answer with the planned calls. Each call keeps its id.
pub(super) fn rewrite_calls(
    answer: Message,
    planned: &[PlannedCall],
    programs: &[ProgramFunction],
) -> Message {
    let calls = answer
        .calls
        .into_iter()
        .zip(planned)
        .map(|(old, plan)| function_call(old.id, &plan.call, programs))
        .collect();
    Message { calls, ..answer }
}

/// Converts a name to one that endpoints accept.
fn plain_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    if plain.is_empty() { "unknown".to_owned() } else { plain }
}

fn as_object(arguments: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(value @ serde_json::Value::Object(_)) => value.to_string(),
        _ => "{}".to_owned(),
    }
}

/// Generates an id for a call that has none: nine letters and digits, which every provider accepts.
fn generated_id(step: u32, number: u32) -> String {
    format!("c{:04}{:04}", step % 10_000, number % 10_000)
}

/// Returns the answer, followed by one message per call with its result.
pub(super) fn observation(
    nonce: &Nonce,
    step: u32,
    answer: Message,
    outputs: &[Output],
    notes: &[String],
) -> Vec<Message> {
    let last = answer.calls.len().saturating_sub(1);
    let result = |(at, (call, output)): (usize, (&FunctionCall, &Output))| {
        let notes = if at == last { notes } else { &[] };
        Message::tool(
            call.id.clone(),
            observation::message(nonce, step, std::slice::from_ref(output), notes),
        )
    };
    let results: Vec<Message> = answer.calls.iter().zip(outputs).enumerate().map(result).collect();
    [answer].into_iter().chain(results).collect()
}
