//! Tests of the agent loop's state machine. Each module tests one topic.
//!
//! - `answers`, `hostile`: the reader, tested with the answers in `tests/answers/` and random ones.
//! - `families`: the calls and thoughts in the formats of model families, in `tests/families/`.
//! - `leftovers`: final answers with special tokens, channels or unread calls.
//! - `native`, `plain`: the dialects with function calls, and the dialect without any calls.
//! - `runs`, `machine`: the scripted runs in `tests/runs/`, and properties that hold for every run.
//! - `prompt`, `marks`: the system prompt, and the markers of the host's own lines.
//! - `event`: the serialized form of events.
//! - `kept`: the values that programs keep for later programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod answers;
mod draft;
mod event;
mod families;
mod hostile;
mod kept;
mod leftovers;
mod machine;
mod marks;
mod native;
mod plain;
mod prompt;
mod runs;
mod window;
