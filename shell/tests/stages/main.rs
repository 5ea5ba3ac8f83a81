//! Stages of pipelines: what a guest can ask its host for, what it is held to, and the commands that come with the shell.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests may panic")]

mod calls;
mod commands;
mod guest;
mod hostile;
mod random;
mod streams;
