//! The phases of a run: the input that the run waits for, and the current attempt at a step.

use serde::{Deserialize, Serialize};

use crate::{
    call::Call, contribution::TraitProgram, dialect::PlannedCall, ending::Bound,
    fix::FailedProgram, message::Message, output::RejectedAnswer, request::Purpose,
};

/// The input that a run is waiting for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// The user's message.
    Ready,
    /// The verdict on the user's message.
    Moderating,
    /// The outcomes of the trait programs.
    Contributing { turn: Turn, programs: Vec<TraitProgram> },
    /// The outcome of the recall program.
    Recalling(Turn),
    /// The model's answer.
    Asking(Turn),
    /// The outcomes of the calls.
    Executing {
        turn: Turn,
        /// The model's answer as it is recorded in the conversation.
        answer: Message,
        planned: Vec<PlannedCall>,
        /// Notes for the model about the form of its answer.
        notes: Vec<String>,
        /// The text that the model wrote in addition to its calls, if the results of all these
        /// calls are hidden from the model. If the calls succeed, the run ends with this text.
        /// `None` if the model will see the result of at least one call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closing: Option<String>,
    },
    /// The result of validating an answer.
    Validating(PendingAnswer),
    /// No input, because the run has ended.
    Ended,
}

/// An answer that is being validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingAnswer {
    /// The turn that produced the answer.
    pub(crate) turn: Turn,
    /// The message to store in the session if the answer is valid.
    pub(crate) message: Message,
    pub(crate) text: String,
    /// The limit that the run reached, or `None` if it reached none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<Bound>,
}

/// An attempt at the current step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) purpose: Purpose,
    pub(crate) attempt: u32,
    /// The last program that did not compile and awaits repair.
    pub(crate) failed_program: Option<FailedProgram>,
    /// The fault that made the previous answer unusable. `None` for a first attempt, or if the
    /// previous answer contained a program to repair or a final answer to correct.
    #[serde(default)]
    pub(crate) retry_reason: Option<RetryReason>,
    /// If true, an answer of this step had marks of the model's own format and was asked for again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) had_leftovers: bool,
    /// The last answer that did not match the contract and awaits correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<RejectedAnswer>,
}

impl Turn {
    /// Creates the first attempt at a step.
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            attempt: 0,
            failed_program: None,
            retry_reason: None,
            had_leftovers: false,
            rejected: None,
        }
    }
}

/// A fault that makes an answer unusable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RetryReason {
    /// The answer was empty.
    Empty,
    /// The answer was truncated.
    Truncated,
    /// The provider withheld the answer.
    Filtered,
    /// The model called a program in a turn that required an answer.
    Called,
    /// The answer had this mark of the model's own format.
    Leftover(String),
}

/// The calls and outputs of the last step, and the number of consecutive steps in which they were
/// identical.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RepeatedCalls {
    pub(crate) calls: Vec<Call>,
    pub(crate) outputs: Vec<String>,
    pub(crate) times: u32,
}
