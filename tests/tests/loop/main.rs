//! Runs as a whole: in either dialect, up to each bound, with models that misbehave, and what they cost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod bounds;
mod dialects;
mod endpoint;
mod guard;
mod injection;
mod misbehaving;
mod usage;
