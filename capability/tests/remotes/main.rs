//! The broker against real remotes: `git http-backend` behind https, and `sshd`, with right and
//! wrong keys and certificates.
//!
//! Where a machine lacks one of these programs a line says so and the tests pass; in CI they have
//! to be there.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests may panic"
)]

mod authority;
mod https;
mod place;
mod ssh;
