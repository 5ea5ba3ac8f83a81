//! The broker with real remotes: `git http-backend` behind https, and `sshd`, each with valid and
//! invalid keys and certificates.
//!
//! If one of these programs is not installed, its tests print that they are skipped, and pass. In
//! CI they fail.

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
