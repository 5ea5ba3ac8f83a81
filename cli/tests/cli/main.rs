//! Tests of the binary from the outside: its output, its exit codes, and the files that it writes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod agents;
mod artifacts;
mod authoring;
mod check;
mod completions;
mod config;
mod durable;
mod engine;
mod eval;
mod exec;
mod first_try;
mod hostile;
mod init;
mod inspect;
mod interrupt;
mod kept;
mod mcp;
mod memory;
mod models;
mod place;
mod projects;
mod readme;
mod replicas;
mod run;
mod runs;
mod settings_files;
mod skills;
mod stores;
mod tenants;
mod terminal;
mod traces;
mod transcripts;
mod trust;
mod workbook;
mod writers;
