//! Tests of the library: agents, their runs, and the store. Each module tests one topic. The tests
//! in `postgres.rs`, beside this folder, are a separate program, because one of them ends all
//! connections to the PostgreSQL server that the tests of one process share.
//!
//! - `agents`, `programs`: declared agents, and programs that start catalog programs.
//! - `embed`: agents in an application.
//! - `ledger`, `model_cassette`: signed traces, and recordings of model answers.
//! - `state`, `memory`, `tenants`, `keep`, `sealed`, `private`: the content of a store, its owners,
//!   its removal over time, its masking, and the access to its files.
//! - `loss`: the files of a store that are locked, lost, replaced or damaged.
//! - `usage`: the limits on what a run, a tenant and a store keep.
//! - `shares`: the memory of the process that a tenant may use.
//! - `copy`, `files`: a store in another engine, and files of other versions.
//! - `place`: the location of a test's store, in SQLite or in PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod agents;
mod copy;
#[allow(clippy::print_stdout, reason = "a test prints what it hands to another process")]
mod embed;
mod files;
mod keep;
mod ledger;
#[cfg(unix)]
mod loss;
mod memory;
mod model_cassette;
mod place;
#[cfg(unix)]
mod private;
mod privileges;
mod programs;
mod rewind;
mod sealed;
mod shares;
mod state;
mod tenants;
mod usage;
