//! Tests of the loop by itself. Each module tests one topic.
//!
//! - `answers`, `hostile`: reading of answers, those in `tests/answers/` and random ones.
//! - `native`, `plain`: dialects with function calls, and the one without any calls.
//! - `runs`, `machine`: whole runs in `tests/runs/`, and properties of every run.
//! - `prompt`, `marks`: the system prompt, and the markers of the host's own lines.
//! - `event`: the serialized form of events.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod answers;
mod event;
mod hostile;
mod machine;
mod marks;
mod native;
mod plain;
mod prompt;
mod runs;
