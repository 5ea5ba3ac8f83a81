//! What a state machine wanted done, as a journal keeps it: whole, and yet no longer than what is new in it.

use serde::{Deserialize, Serialize};
use wattle_machine::{Ask, Call, Dialect, Effect, Ending, Event, Message, Purpose};

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// The message was looked at.
    Moderate {
        /// The message.
        message: String,
    },
    /// The model was asked.
    Ask(Asked),
    /// Programs were run.
    Execute {
        /// The step, counted from 1.
        step: u32,
        /// The programs.
        calls: Vec<Call>,
    },
    /// An event was sent.
    Emit(Event),
    /// The run ended.
    Finish(Ending),
}

/// What the model was asked: the messages that it was not asked the time before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The step, counted from 1.
    pub step: u32,
    /// Which attempt within the step.
    pub attempt: u32,
    /// What the answer was wanted for.
    pub purpose: Purpose,
    /// Whether it was offered functions.
    pub dialect: Dialect,
    /// How many messages were the same as the time before, from the first on.
    pub same: usize,
    /// The others.
    pub messages: Vec<Message>,
}

/// Makes short what was wanted, turn by turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Shortener {
    asked: Vec<Message>,
}

impl Shortener {
    pub(super) fn shorten(&mut self, effects: &[Effect]) -> Vec<Done> {
        effects.iter().map(|effect| self.one(effect)).collect()
    }

    fn one(&mut self, effect: &Effect) -> Done {
        match effect {
            Effect::Moderate { message } => Done::Moderate { message: message.clone() },
            Effect::Ask(Ask { step, attempt, purpose, dialect, messages }) => {
                let same = self.asked.iter().zip(messages).take_while(|(was, is)| was == is).count();
                let new = messages.get(same..).unwrap_or_default().to_vec();
                self.asked.clone_from(messages);
                let (step, attempt, purpose, dialect) = (*step, *attempt, *purpose, *dialect);
                Done::Ask(Asked { step, attempt, purpose, dialect, same, messages: new })
            }
            Effect::Execute { step, calls } => Done::Execute { step: *step, calls: calls.clone() },
            Effect::Emit(event) => Done::Emit(event.clone()),
            Effect::Finish(ending) => Done::Finish(ending.clone()),
        }
    }
}

/// How two values that differ go on where they begin to; for people.
pub(super) fn difference(was: &impl Serialize, is: &impl Serialize) -> (String, String) {
    let text = |value: serde_json::Result<String>| value.unwrap_or_default();
    apart(&text(serde_json::to_string(was)), &text(serde_json::to_string(is)))
}

/// Where two texts differ, with a little before it.
pub(super) fn apart(was: &str, is: &str) -> (String, String) {
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
