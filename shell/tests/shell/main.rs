//! Tests of the shell. Each module tests one topic.
//!
//! - `corpus`: scripts and their results in bash, in `tests/corpus/`.
//! - `language`, `numbers`, `memory`: behaviour that bash does not define, numbers of all sizes,
//!   and limits on the memory that a shell itself takes.
//! - `stages`: pipeline stages, which run commands in WebAssembly.
//! - `toolbox`: the commands' module, its manifest and its sources.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

#[allow(clippy::print_stdout, reason = "a test prints what it skips")]
mod corpus;
mod language;
mod memory;
mod numbers;
mod stages;
mod toolbox;
