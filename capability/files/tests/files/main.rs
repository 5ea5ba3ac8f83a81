//! Tests of the run's files:
//!
//! - `files`, `open`: each operation, in each type of run;
//! - `charge`: the memory of an overlay, charged to an account;
//! - `model`: random operations, compared with a model;
//! - `apply`, `discard`, `processes`: changes that are applied or discarded, also while other
//!   processes change the base or are killed;
//! - `hostile`: paths and links that try to leave the workdir;
//! - `host_files`, `other_names`, `repository`: entries that no run may read or change.
//!
//! `common` contains helpers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod apply;
mod charge;
mod common;
mod discard;
mod files;
mod host_files;
mod hostile;
mod model;
mod open;
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
mod other_names;
mod processes;
mod repository;
