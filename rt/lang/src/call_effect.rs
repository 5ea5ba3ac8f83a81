//! The effect of a call outside the program.

use serde::{Deserialize, Serialize};

/// What a call of a host function does outside the program, and so what is to become of it where the program is run once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEffect {
    /// Nothing: it is a function of what it is given, and is computed again.
    None,
    /// It looks at something and leaves it as it is: it may be done again as long as nothing came of it.
    Reads,
    /// It changes something, and doing it twice is the same as doing it once.
    Repeatable,
    /// It changes something, and doing it twice is not the same.
    Once,
    /// It changes the run's files, and doing it twice is the same as doing it once.
    Writes,
    /// It changes the run's files, and doing it twice is not the same, where they are not in the memory of the run.
    Changes,
}

impl CallEffect {
    /// The name that tables and tapes use.
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

    /// The effect of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CallEffect> {
        use CallEffect::{Changes, None as Nothing, Once, Reads, Repeatable, Writes};
        [Nothing, Reads, Repeatable, Once, Writes, Changes].into_iter().find(|effect| effect.name() == name)
    }
}
