//! Tests complete runs: both dialects, each limit, misbehaving models, and costs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod artifacts;
mod bounds;
mod dialects;
mod endpoint;
mod fix;
mod guard;
mod injection;
mod misbehaving;
mod orient;
mod output;
mod recall;
mod trace;
mod traits;
mod usage;
