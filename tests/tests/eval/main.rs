//! Tests evaluations: the loading of suites, attempts and their results, and the shipped suites.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod attempts;
mod baseline;
mod place;
mod reports;
mod shipped;
mod suites;
mod team;
