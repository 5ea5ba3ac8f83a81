//! Evaluations: suites as they are read, attempts as they are made and kept, and the shipped set, all of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod attempts;
mod baseline;
mod place;
mod shipped;
mod suites;
