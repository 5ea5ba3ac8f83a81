//! Values that programs keep for the later programs of the run.

use serde::{Deserialize, Serialize};

use crate::message::is_default;

/// Maximum number of names under which a run keeps values.
pub const MAX_KEPT: usize = 64;

/// Maximum total size of a run's kept values as JSON, in bytes.
pub const MAX_KEPT_BYTES: usize = 64 << 20;

/// A value that a program keeps for the later programs of the run, which read it as a variable. The
/// value itself is on the program's tape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptValue {
    /// The name of the variable, without `$`.
    pub name: String,
    /// A short description of the value's shape, such as `list of 240 {id, name}`.
    pub about: String,
    /// The hash of the value's JSON text, in hexadecimal.
    pub hash: String,
    /// Size of the JSON text, in bytes.
    pub bytes: u64,
    /// If true, the value is what a call printed, which is cut in the conversation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_result: bool,
}

/// Returns the name under which the whole result of a call is kept if the conversation shows only a
/// part of it: `last`, or `last1`, `last2` and so on if the step has several calls. `at` is the
/// index of the call, and `calls` the number of calls.
pub fn result_name(at: usize, calls: usize) -> String {
    if calls == 1 { "last".to_owned() } else { format!("last{}", at + 1) }
}

/// Adds a kept value to those of a run. It replaces an earlier value of the same name.
///
/// # Errors
/// If the run's kept values would exceed their limits, because programs that ran at the same time
/// kept too much. The error is a message for the model.
pub(crate) fn keep(kept: &mut Vec<KeptValue>, value: &KeptValue) -> Result<(), String> {
    let others = || kept.iter().filter(|known| known.name != value.name);
    let bytes = others().fold(value.bytes, |bytes, known| bytes.saturating_add(known.bytes));
    if others().count() >= MAX_KEPT || bytes > MAX_KEPT_BYTES as u64 {
        return Err(format!(
            "`${}` is not kept: a run keeps at most {MAX_KEPT} values of together {} MiB",
            value.name,
            MAX_KEPT_BYTES >> 20
        ));
    }
    kept.retain(|known| known.name != value.name);
    kept.push(value.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_one_step_have_names_of_their_own() {
        assert_eq!(result_name(0, 1), "last");
        assert_eq!([result_name(0, 2), result_name(1, 2)], ["last1", "last2"]);
    }
}
