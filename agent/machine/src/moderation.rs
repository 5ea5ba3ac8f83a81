//! Moderation verdicts on users' messages.

use serde::{Deserialize, Serialize};

/// The verdict on whether a message may start a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The message is allowed.
    Allowed,
    /// The message is blocked, and the run ends before its first step.
    Blocked {
        /// The category of the content, such as `violence`.
        category: String,
        /// The message for the user.
        message: String,
    },
    /// Moderation failed.
    Failed {
        /// The cause of the failure.
        reason: String,
        /// If true, the message is allowed despite the failure. Otherwise, the run ends.
        #[serde(rename = "allowed")]
        is_allowed: bool,
        /// The message for the user if the run ends.
        message: String,
    },
}

impl Verdict {
    /// Returns the message for the user, or `None` if the run may start.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Allowed | Self::Failed { is_allowed: true, .. } => None,
            Self::Blocked { message, .. } | Self::Failed { message, .. } => Some(message),
        }
    }
}
