//! The broker with real remotes: `git http-backend` over HTTPS, and `sshd`, with valid and invalid
//! keys and certificates.
//!
//! If a machine lacks one of these programs, a line reports it and the tests pass. In CI the
//! programs are required.

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
