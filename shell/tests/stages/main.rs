//! Tests of pipeline stages: the host functions, the limits of a stage, and the bundled
//! commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod calls;
mod commands;
mod guest;
mod hostile;
mod random;
mod streams;
