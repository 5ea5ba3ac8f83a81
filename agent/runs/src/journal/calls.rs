//! The recorded calls of a run, in human-readable form.

use serde::Serialize;
use wattle_rt::tape::RecordedValue;
use wattle_store::StoreError;

use super::tape::HOST_NAMES;
use super::{RecordedCall, RecordedEffect, SharedJournal};
use crate::trace::clip;

/// Maximum length of the arguments, and of the result, in characters.
const MAX_CHARS: usize = 4_000;

/// A call that a run's program made to a host function.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallView {
    /// The step, counted from 1.
    pub step: u32,
    /// The number of the call that ran the program, counted from 1 within the step.
    pub program: u32,
    /// The path of the nested program that made the call, with three numbers for each level of
    /// nesting. Empty if no nested program made it.
    pub path: Vec<u32>,
    /// The number of the call within its program. A program's first call has the number 2.
    pub number: u32,
    /// The function, such as `fs.read`.
    pub function: String,
    /// The name of the function's effect, such as `reads`.
    pub effect: &'static str,
    /// Number of consecutive calls with the same arguments and result.
    pub times: u32,
    /// The arguments, shortened to at most 4,000 characters.
    pub args: String,
    /// The result, shortened to at most 4,000 characters, if the call succeeded.
    pub result: Option<String>,
    /// The error, if the call failed.
    pub error: Option<String>,
    /// If true, the call has no result yet.
    pub pending: bool,
    /// Start time of the first of the consecutive calls, in milliseconds since 1970. Null if the
    /// call was recorded by a version of Wattle that did not record times.
    pub ts: Option<u64>,
    /// Time from `ts` to the end of the last of the consecutive calls, in milliseconds.
    pub dur_ms: Option<u64>,
}

/// Returns the calls that a run's programs made to host functions, in order.
///
/// # Errors
/// If the journal cannot be read.
pub async fn calls(journal: &SharedJournal, run: &str) -> Result<Vec<CallView>, StoreError> {
    let mut views = Vec::new();
    for (number, turn) in (0..).zip(journal.turns(run).await?) {
        let step = turn.effects.iter().find_map(|effect| match effect {
            RecordedEffect::Execute { step, .. }
            | RecordedEffect::Contribute { step, .. }
            | RecordedEffect::Recall { step, .. } => Some(*step),
            _ => None,
        });
        let Some(step) = step else { continue };
        let recorded = journal.calls_of(run, number).await?.into_iter();
        let to_outside = recorded.filter(|call| !HOST_NAMES.contains(&&*call.id.function));
        views.extend(to_outside.map(|call| view(step, call)));
    }
    Ok(views)
}

fn view(step: u32, call: RecordedCall) -> CallView {
    let (result, error) = match call.result {
        None => (None, None),
        Some(Ok(value)) => (Some(clip(&text(&value), MAX_CHARS)), None),
        Some(Err(failure)) => (None, Some(format!("{:?}: {}", failure.code, failure.reason))),
    };
    CallView {
        step,
        program: call.program.saturating_add(1),
        path: call.id.path.to_vec(),
        number: call.id.number,
        function: call.id.function.into_owned(),
        effect: call.id.effect.name(),
        times: call.times,
        args: clip(&call.id.args, MAX_CHARS),
        pending: result.is_none() && error.is_none(),
        result,
        error,
        ts: call.time.map(|time| time.began),
        dur_ms: call.time.and_then(|time| time.dur_ms),
    }
}

fn text(value: &RecordedValue) -> String {
    let bytes = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        RecordedValue::Unit => String::new(),
        RecordedValue::Int(number) => number.to_string(),
        RecordedValue::Long(number) => number.to_string(),
        RecordedValue::Float(number) => number.to_string(),
        RecordedValue::Bytes(value) => bytes(value),
        RecordedValue::Items(items) => {
            items.iter().map(|item| bytes(item)).collect::<Vec<_>>().join("\n")
        }
    }
}
