//! Tests of the runtime through its public API: the account of a run, the limits on programs and
//! guests, panics in host functions, and stored machine code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod account;
mod cost;
mod guest;
mod panics;
mod stored;
