//! The native dialect: calls of functions, each with a result of its own.

use std::collections::BTreeSet;

use super::arguments::{self, Meant};
use super::{Intent, ParsedAnswer, PlannedCall, function_call, leaked, text};
use crate::{
    call::Call,
    function::ProgramFunction,
    mark::Nonce,
    message::{FunctionCall, Message},
    observation::{self, Output},
    reader::{Action, Read, Reading, read_call, read_repair},
    state::{ModelAnswer, Purpose},
};

/// The most calls of one turn that are carried out.
const MOST: usize = 16;

pub(super) fn read(answer: &ModelAnswer, purpose: Purpose, step: u32, programs: &[ProgramFunction]) -> ParsedAnswer {
    let reading = read_call(&answer.text);
    if !answer.calls.is_empty() {
        let reading = match reading {
            Read::Called(reading) | Read::Uncalled(reading) => reading,
        };
        let thought = reading.thought.or(match reading.action {
            Action::Response { text } => Some(text).filter(|text| !text.is_empty()),
            Action::Wat { .. } | Action::Catalog { .. } => None,
        });
        return called(answer, thought, &answer.calls, step, programs);
    }
    match reading {
        Read::Called(reading) => in_text(answer, reading, true, step, programs),
        Read::Uncalled(Reading { thought, action: Action::Response { text }, .. })
            if let Some(found) = leaked::find(&text, programs) =>
        {
            let mut said = called(answer, thought.or(found.before), &found.calls, step, programs);
            said.is_whole &= found.is_whole;
            said
        }
        Read::Uncalled(reading) if purpose == Purpose::Repair => {
            in_text(answer, read_repair(reading), false, step, programs)
        }
        Read::Uncalled(reading) => in_text(answer, reading, false, step, programs),
    }
}

/// What is said in the text dialect; a call in it becomes one of a function, so that the model sees what it should have done.
fn in_text(
    answer: &ModelAnswer,
    reading: Reading,
    is_called: bool,
    step: u32,
    programs: &[ProgramFunction],
) -> ParsedAnswer {
    let said = text::of_reading(answer, reading, is_called);
    let message = match &said.wish {
        Intent::Answer(text) => Message::assistant(text.clone()),
        Intent::Calls(planned) => {
            let calls =
                planned.iter().map(|planned| function_call(made_up(step, 1), &planned.call, programs)).collect();
            Message::calling(said.thought.clone().unwrap_or_default(), calls)
        }
    };
    ParsedAnswer { message, notes: Vec::new(), ..said }
}

fn called(
    answer: &ModelAnswer,
    thought: Option<String>,
    calls: &[FunctionCall],
    step: u32,
    programs: &[ProgramFunction],
) -> ParsedAnswer {
    let mut is_whole = true;
    let mut meant: Vec<(&FunctionCall, Meant)> = Vec::new();
    for call in calls {
        let (what, whole) = arguments::meant(&call.name, &call.arguments, programs);
        is_whole &= whole;
        meant.push((call, what));
    }
    let content = thought.clone().unwrap_or_default();
    let thought = thought.or_else(|| answer.reasoning.clone());
    let notes = Vec::new();
    if meant.iter().all(|(_, meant)| matches!(meant, Meant::Done(_))) {
        let text = meant.into_iter().find_map(|(_, meant)| match meant {
            Meant::Done(text) => Some(text),
            Meant::Run(_) => None,
        });
        // A model may say its answer and call the end without it.
        let text = text.filter(|text| !text.is_empty()).unwrap_or(content);
        return ParsedAnswer {
            thought,
            wish: Intent::Answer(text.clone()),
            message: Message::assistant(text),
            notes,
            is_whole,
        };
    }
    let mut ids = BTreeSet::new();
    let (mut planned, mut said) = (Vec::new(), Vec::new());
    for ((call, meant), number) in meant.into_iter().zip(1..) {
        let own = Some(call.id.clone()).filter(|id| !id.is_empty() && !ids.contains(id));
        let made_up = || (number..).map(|number| made_up(step, number)).find(|id| !ids.contains(id));
        let id = own.or_else(made_up).unwrap_or_default();
        ids.insert(id.clone());
        let plan = match meant {
            Meant::Run(plan) => plan,
            Meant::Done(_) => {
                let call = Call::Catalog { name: crate::function::DONE.to_owned(), args: Vec::new() };
                PlannedCall::refused(
                    call,
                    "not taken: read the results of the other calls first, then call `done` by itself",
                )
            }
        };
        // What goes back must be JSON, whatever came.
        said.push(match &plan.refused {
            None => function_call(id, &plan.call, programs),
            Some(_) => FunctionCall { id, name: plain_name(&call.name), arguments: as_object(&call.arguments) },
        });
        planned.push(plan);
    }
    alone(&mut planned, programs);
    ParsedAnswer { thought, wish: Intent::Calls(planned), message: Message::calling(content, said), notes, is_whole }
}

/// Lets an exclusive program run alone, and no more than there may be of the others.
fn alone(planned: &mut [PlannedCall], programs: &[ProgramFunction]) {
    let is_exclusive = |call: &Call| matches!(call, Call::Catalog { name, .. } if programs.iter().any(|known| known.exclusive && known.program == *name));
    let found = planned.iter().position(|plan| plan.refused.is_none() && is_exclusive(&plan.call));
    let name = found.and_then(|at| planned.get(at)).map(|plan| plan.call.label().to_owned());
    for (at, plan) in planned.iter_mut().enumerate().filter(|(_, plan)| plan.refused.is_none()) {
        if let (Some(found), Some(name)) = (found, &name)
            && at != found
        {
            plan.refused = Some(format!(
                "not run: `{name}` runs with no other call beside it; call this one in a turn of its own"
            ));
        } else if at >= MOST {
            plan.refused = Some(format!(
                "not run: of one turn's calls the first {MOST} are carried out; call it in the next turn"
            ));
        }
    }
}

/// Writes an answer as one that makes these calls; each keeps its id.
pub(super) fn said_with(said: Message, planned: &[PlannedCall], programs: &[ProgramFunction]) -> Message {
    let calls =
        said.calls.into_iter().zip(planned).map(|(was, plan)| function_call(was.id, &plan.call, programs)).collect();
    Message { calls, ..said }
}

/// A name that endpoints take back.
fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(64).collect();
    if plain.is_empty() { "unknown".to_owned() } else { plain }
}

fn as_object(arguments: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(value @ serde_json::Value::Object(_)) => value.to_string(),
        _ => "{}".to_owned(),
    }
}

/// An id for a call that has none: nine letters and digits, which every provider takes.
fn made_up(step: u32, number: u32) -> String {
    format!("c{:04}{:04}", step % 10_000, number % 10_000)
}

pub(super) fn observed(nonce: &Nonce, step: u32, said: Message, outputs: &[Output], notes: &[String]) -> Vec<Message> {
    let last = said.calls.len().saturating_sub(1);
    let result = |(at, (call, output)): (usize, (&FunctionCall, &Output))| {
        let notes = if at == last { notes } else { &[] };
        Message::tool(call.id.clone(), observation::message(nonce, step, std::slice::from_ref(output), notes))
    };
    let results: Vec<Message> = said.calls.iter().zip(outputs).enumerate().map(result).collect();
    [said].into_iter().chain(results).collect()
}
