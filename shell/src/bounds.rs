//! What a line may use.

use std::time::Duration;

use crate::toolbox::StageBounds;

/// The bounds of one line. Each that is reached ends something with words; the session goes on.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The longest script, in bytes: 1 MiB.
    pub script: usize,
    /// How long a line may take where its caller does not say: 10 minutes.
    pub deadline: Duration,
    /// The commands that a line may start in all, subshells and jobs included, builtins not: 100,000.
    pub commands: u64,
    /// The stages, jobs and process substitutions that run at once: 64.
    pub at_once: usize,
    /// How deep functions, subshells, substitutions and sourced texts may stand in one another: 200.
    pub depth: u32,
    /// The bytes that the variables of a session hold, those of its subshells included: 16 MiB.
    pub variables: u64,
    /// The bytes that a command substitution gives: 4 MiB.
    pub substitution: usize,
    /// The words of one command: 200,000.
    pub words: usize,
    /// The descriptors that are open at once: 256.
    pub descriptors: usize,
    /// What one command of the toolbox may use.
    pub stage: StageBounds,
    /// What [`Shell::capture`](crate::Shell::capture) keeps of each output, half of it from the beginning and half from the end: 1 MiB.
    pub output: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            script: 1 << 20,
            deadline: Duration::from_secs(600),
            commands: 100_000,
            at_once: 64,
            depth: 200,
            variables: 16 << 20,
            substitution: 4 << 20,
            words: 200_000,
            descriptors: 256,
            stage: StageBounds::default(),
            output: 1 << 20,
        }
    }
}

/// An amount of bytes in words: whole MiB where it is that, else KiB.
pub(crate) fn amount(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or(u64::MAX);
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes.div_ceil(1024))
    }
}
