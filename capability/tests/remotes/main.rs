//! Tests the broker against real remotes: `git http-backend` over HTTPS, and `sshd`, each with
//! valid and invalid keys and certificates.
//!
//! If one of these programs is not installed, its tests are skipped: they print a note and pass. In
//! CI they fail instead.

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
