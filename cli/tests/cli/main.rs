//! The binary as a user meets it: its output, its exit codes, what it leaves behind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod config;
mod exec;
mod interrupt;
mod place;
mod readme;
mod run;
mod transcripts;
