//! The effects of a turn in the form that a journal stores. They are complete, except that the
//! conversation is not repeated.

use serde::{Deserialize, Serialize};
use wattle_machine::{Ask, Call, Dialect, Effect, Ending, Event, Message, Purpose};

/// A recorded effect. It mirrors [`Effect`], except that a request to the model stores only the
/// messages that the previous request did not contain. Otherwise each turn would repeat the whole
/// conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedEffect {
    /// A request to moderate the user's message.
    Moderate {
        /// The user's message.
        message: String,
    },
    /// A request to the model.
    Ask(RecordedAsk),
    /// A request to run calls.
    Execute {
        /// The step, counted from 1.
        step: u32,
        /// The calls to run, in order.
        calls: Vec<Call>,
    },
    /// A refused call, which is not run.
    Refuse {
        /// The step, counted from 1.
        step: u32,
        /// The refused call.
        call: Call,
        /// The reason for the refusal.
        reason: String,
    },
    /// A request to run the memory-recall program.
    Recall {
        /// The step for which the memory items are recalled, counted from 1.
        step: u32,
        /// The call.
        call: Call,
    },
    /// A function call that contains the final answer.
    Done {
        /// The step, counted from 1.
        step: u32,
        /// The call.
        call: Call,
    },
    /// A request to run the programs of the agent's traits.
    Contribute {
        /// The step that the programs precede, counted from 1.
        step: u32,
        /// The calls of the traits' programs, in order.
        calls: Vec<Call>,
    },
    /// A request to validate an answer.
    Validate {
        /// The answer to validate.
        text: String,
    },
    /// An event to emit.
    Emit(Event),
    /// The end of the run.
    Finish(Ending),
}

/// A recorded request to the model, with the messages that are new since the previous request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedAsk {
    /// The step, counted from 1.
    pub step: u32,
    /// The number of the attempt within the step, counted from 0.
    pub attempt: u32,
    /// The purpose of the request.
    pub purpose: Purpose,
    /// The dialect of the request.
    pub dialect: Dialect,
    /// Number of leading messages that are the same as in the previous request.
    pub same: usize,
    /// The remaining messages.
    pub messages: Vec<Message>,
}

/// A converter from effects to their recorded form. It remembers the messages of the previous
/// request.
#[derive(Clone, Debug, Default)]
pub struct EffectRecorder {
    previous: Vec<Message>,
}

impl EffectRecorder {
    /// Converts the effects of the next turn.
    pub fn record(&mut self, effects: &[Effect]) -> Vec<RecordedEffect> {
        effects.iter().map(|effect| self.record_one(effect)).collect()
    }

    fn record_one(&mut self, effect: &Effect) -> RecordedEffect {
        match effect {
            Effect::Moderate { message } => RecordedEffect::Moderate { message: message.clone() },
            Effect::Ask(Ask { step, attempt, purpose, dialect, messages }) => {
                let same =
                    self.previous.iter().zip(messages).take_while(|(was, is)| was == is).count();
                let new = messages.get(same..).unwrap_or_default().to_vec();
                self.previous.clone_from(messages);
                let (step, attempt, purpose, dialect) = (*step, *attempt, *purpose, *dialect);
                RecordedEffect::Ask(RecordedAsk {
                    step,
                    attempt,
                    purpose,
                    dialect,
                    same,
                    messages: new,
                })
            }
            Effect::Execute { step, calls } => {
                RecordedEffect::Execute { step: *step, calls: calls.clone() }
            }
            Effect::Refuse { step, call, reason } => {
                let (step, call, reason) = (*step, call.clone(), reason.clone());
                RecordedEffect::Refuse { step, call, reason }
            }
            Effect::Recall { step, call } => {
                RecordedEffect::Recall { step: *step, call: call.clone() }
            }
            Effect::Done { step, call } => RecordedEffect::Done { step: *step, call: call.clone() },
            Effect::Contribute { step, calls } => {
                RecordedEffect::Contribute { step: *step, calls: calls.clone() }
            }
            Effect::Validate { text } => RecordedEffect::Validate { text: text.clone() },
            Effect::Emit(event) => RecordedEffect::Emit(event.clone()),
            Effect::Finish(ending) => RecordedEffect::Finish(ending.clone()),
        }
    }
}

/// Returns excerpts from the JSON forms of two values. The excerpts begin shortly before the first
/// difference.
pub fn describe_difference(was: &impl Serialize, is: &impl Serialize) -> (String, String) {
    let text = |value: serde_json::Result<String>| value.unwrap_or_default();
    excerpts(&text(serde_json::to_string(was)), &text(serde_json::to_string(is)))
}

/// Returns an excerpt from each of two strings. The excerpts begin shortly before the first
/// difference.
pub fn excerpts(was: &str, is: &str) -> (String, String) {
    const BEFORE: usize = 20;
    const SHOWN: usize = 120;
    let same = was.chars().zip(is.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(BEFORE);
    let cut = |text: &str| {
        let head = if from > 0 { "…" } else { "" };
        let tail = if text.chars().count() > from + SHOWN { "…" } else { "" };
        format!("{head}{}{tail}", text.chars().skip(from).take(SHOWN).collect::<String>())
    };
    (cut(was), cut(is))
}
