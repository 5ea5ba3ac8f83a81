//! The effect of a call outside the program.

use serde::{Deserialize, Serialize};

/// The effect of a host function outside the program. It decides what happens to the call when the
/// program is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEffect {
    /// No effect: the result depends only on the arguments. The call is performed again.
    None,
    /// Reads without changing anything. The call may be repeated until its result is recorded.
    Reads,
    /// Changes something. The call is idempotent.
    Repeatable,
    /// Changes something. The call is not idempotent.
    Once,
    /// Changes the run's files. The call is idempotent.
    Writes,
    /// Changes the run's files. The call is not idempotent, unless the files are in the run's
    /// memory.
    Changes,
}

impl CallEffect {
    /// Returns the name that tables and tapes use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CallEffect::None => "none",
            CallEffect::Reads => "reads",
            CallEffect::Repeatable => "repeatable",
            CallEffect::Once => "once",
            CallEffect::Writes => "writes",
            CallEffect::Changes => "changes",
        }
    }

    /// Parses the name of an effect.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CallEffect> {
        use CallEffect::{Changes, None as Nothing, Once, Reads, Repeatable, Writes};
        [Nothing, Reads, Repeatable, Once, Writes, Changes]
            .into_iter()
            .find(|effect| effect.name() == name)
    }
}
