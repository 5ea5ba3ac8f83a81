//! The binary as a user meets it: its output, its exit codes, what it leaves behind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod authoring;
mod config;
mod durable;
mod eval;
mod exec;
mod interrupt;
mod models;
mod place;
mod readme;
mod run;
mod tenants;
mod traces;
mod transcripts;
mod trust;
