//! What a look at the user's message finds before anything is done about it.

use serde::{Deserialize, Serialize};

/// Says whether a message may begin a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was found.
    Allowed,
    /// The run ends before its first step.
    Blocked {
        /// What was found, such as `violence`.
        category: String,
        /// What the user is told.
        message: String,
    },
    /// The look itself failed.
    Failed {
        /// Why.
        reason: String,
        /// Whether the message is let through all the same; else the run ends.
        let_through: bool,
        /// What the user is told where it is not.
        message: String,
    },
}

impl Verdict {
    /// Gives what the user is told where the message does not begin a run.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Allowed | Self::Failed { let_through: true, .. } => None,
            Self::Blocked { message, .. } | Self::Failed { message, .. } => Some(message),
        }
    }
}
