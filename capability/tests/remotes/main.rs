//! The broker with real remotes: `git http-backend` behind HTTPS, and `sshd`, with valid and
//! invalid keys and certificates.
//!
//! If a machine lacks one of these programs, the tests that need it print a line and pass. In CI,
//! they fail.

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
