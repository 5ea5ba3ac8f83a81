//! Ends a run with an answer. If the run has an output contract, the answer is validated first.

use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::{
    dialect::{Intent, ParsedAnswer},
    ending::{Bound, Ending},
    message::Message,
    output::{RejectedAnswer, bounded},
    phase::{PendingAnswer, Phase, Turn},
    request::{ModelAnswer, Purpose},
    state::{Effect, State},
};

/// The violation reported if the model calls a program instead of correcting its answer.
const CALLED: &str = "the correction calls a program, and no program is run any more";

/// The violation reported if the corrected answer is empty.
const EMPTY: &str = "the correction is empty";

impl State {
    /// Reads an answer that consists only of a JSON value. Text within the value is never read as a
    /// call. Returns `None` for any other answer, for a run without an output contract, and for a
    /// turn that does not require a final answer.
    pub(super) fn read_value(&self, turn: &Turn, answer: &ModelAnswer) -> Option<ParsedAnswer> {
        let must_answer = matches!(turn.purpose, Purpose::Conclude | Purpose::Amend);
        let text = answer.text.trim();
        if self.output.is_none() || !must_answer || !answer.calls.is_empty() {
            return None;
        }
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        Some(ParsedAnswer {
            thought: answer.reasoning.clone(),
            intent: Intent::Answer(text.to_owned()),
            message: Message::assistant(text),
            notes: Vec::new(),
            done: Vec::new(),
            is_complete: true,
        })
    }

    /// Ends the run with an answer from the model or a program. If the run has an output contract,
    /// requests validation of the answer instead. `bound` is the limit that the run reached, or
    /// `None` if it reached none.
    pub(super) fn answered(
        &mut self,
        turn: Turn,
        message: Message,
        text: String,
        bound: Option<Bound>,
    ) -> Vec<Effect> {
        if self.output.is_none() {
            self.conversation.push(message);
            return self.end(Ending::with_answer(text, bound, None));
        }
        self.phase = Phase::Validating(PendingAnswer { turn, message, text: text.clone(), bound });
        vec![Effect::Validate { text }]
    }

    /// Ends the run with a valid answer, or asks the model for a correction.
    pub(super) fn validated(
        &mut self,
        answer: PendingAnswer,
        validated: Result<Json, Vec<String>>,
    ) -> Vec<Effect> {
        let PendingAnswer { turn, message, text, bound } = answer;
        match validated {
            Ok(data) => {
                self.conversation.push(message);
                self.end(Ending::with_answer(text, bound, Some(data)))
            }
            Err(errors) => self.reject(turn, text, errors, bound),
        }
    }

    /// Handles the model's answer to a request for a correction.
    pub(super) fn amended(
        &mut self,
        turn: Turn,
        intent: Intent,
        is_truncated: bool,
    ) -> Vec<Effect> {
        let before = turn.rejected.clone();
        let bound = before.as_ref().and_then(|rejected| rejected.bound);
        let bound = bound.or(is_truncated.then_some(Bound::Length));
        let error = match intent {
            Intent::Answer(text) if text.is_empty() => EMPTY,
            Intent::Answer(text) => {
                return self.answered(turn, Message::assistant(text.as_str()), text, bound);
            }
            Intent::Calls(_) => CALLED,
        };
        // The previous answer is still the one to correct.
        let (text, errors) =
            before.map(|rejected| (rejected.text, rejected.errors)).unwrap_or_default();
        let errors = errors.into_iter().filter(|error| error != EMPTY && error != CALLED);
        let errors = [error.to_owned()].into_iter().chain(errors).collect();
        self.reject(turn, text, errors, bound)
    }

    /// Asks the model to correct a rejected answer, or ends the run if all attempts are used up.
    fn reject(
        &mut self,
        turn: Turn,
        text: String,
        errors: Vec<String>,
        bound: Option<Bound>,
    ) -> Vec<Effect> {
        let errors = bounded(errors);
        let attempts = turn.rejected.as_ref().map_or(0, |rejected| rejected.attempts);
        if attempts >= self.output.as_ref().map_or(0, |contract| contract.max_attempts) {
            return self.end(Ending::Invalid { text, errors });
        }
        let error = format!("the answer was not accepted: {}", errors.join("; "));
        let rejected = RejectedAnswer { text, errors, attempts: attempts + 1, bound };
        let turn = Turn {
            purpose: Purpose::Amend,
            failed_program: None,
            retry_reason: None,
            rejected: Some(rejected),
            ..turn
        };
        self.retry(turn, error)
    }
}
