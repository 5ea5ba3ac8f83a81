//! The programs and the answer that the gate measures. The workspace's benchmarks use the same
//! programs.

/// A program of typical size: three host calls, a loop, a helper and string literals. Its argument
/// is a name.
pub const PROGRAM: &str = include_str!("../../benches/program.wat");

/// A program that makes [`HOST_CALLS`] host calls, each with a string argument.
pub const CALLING: &str = include_str!("../../benches/host_calls.wat");

/// Number of host calls in [`CALLING`].
pub const HOST_CALLS: u32 = 10_000;

/// Returns the arguments of [`PROGRAM`].
#[must_use]
pub fn args() -> Vec<String> {
    vec!["world".to_owned()]
}

/// Returns a model's answer that runs [`PROGRAM`].
#[must_use]
pub fn answer() -> String {
    format!(
        "<reasoning>Greet the user by name.</reasoning>\nToolCall::Wat(```wat\n{PROGRAM}```, \
         \"world\")"
    )
}
