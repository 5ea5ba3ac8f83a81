//! The effects that calls have outside the program.

use serde::{Deserialize, Serialize};

/// The effect that a host function has outside the program. It determines what happens to a call
/// when the program is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEffect {
    /// No effect: the result depends only on the arguments. If the program is run again, the call
    /// is performed again.
    None,
    /// A read that changes nothing. The call may be repeated until its result is recorded.
    Reads,
    /// An idempotent change.
    Repeatable,
    /// A change that is not idempotent.
    Once,
    /// An idempotent change to the run's files.
    Writes,
    /// A change to the run's files that is not idempotent. It may be repeated only if the changed
    /// files are kept in memory, because a repeated run then starts from the original files.
    Changes,
}

impl CallEffect {
    /// Returns the effect's name, such as `reads`.
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

    /// Returns the effect with this name, or `None` if the name is unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CallEffect> {
        use CallEffect::{Changes, None as Nothing, Once, Reads, Repeatable, Writes};
        [Nothing, Reads, Repeatable, Once, Writes, Changes]
            .into_iter()
            .find(|effect| effect.name() == name)
    }
}
