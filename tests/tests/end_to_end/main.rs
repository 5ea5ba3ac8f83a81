//! End-to-end tests of all crates together. Each module tests one topic. The tests of the HTTP
//! server, in `tests/server/`, are a separate program, because some of them cause failures of the
//! PostgreSQL server that the tests of one process share.
//!
//! - `agent_loop`, `runs`, `tools`, `prompt`, `model`: complete runs, the base tools, the system
//!   prompt, and the model client.
//! - `journal`: runs in a journal, which are replayed, stopped, resumed, parked and forked.
//! - `catalog`, `editions`: the catalog of a host, and programs of the language's earlier editions.
//! - `skills`: instructions, files and scripts that a run uses when it needs them.
//! - `policy_catalog`, `said`, `trust`: the built-in programs under policy rules, the masking of
//!   secrets, and denied calls.
//! - `eval`: evaluations and the shipped suites.
//! - `tokens`: token counts of programs in Wattle's language and in others.
//! - `channels`: the table of the ways in which data can leave a run.
//! - `arrows`: the dependencies between the crates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod agent_loop;
mod arrows;
mod catalog;
mod channels;
mod editions;
mod eval;
mod journal;
mod model;
mod policy_catalog;
mod prompt;
mod runs;
mod said;
mod skills;
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test prints its figures and what it skips"
)]
mod tokens;
mod tools;
mod trust;
