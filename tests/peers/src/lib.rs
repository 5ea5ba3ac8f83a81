//! Benchmarks that run the same jobs in Wattle and in its peers, to compare times and memory.
//!
//! The program `peer` measures one peer with one job and prints the figures as a line of JSON.
//!
//! [`jobs`] loads the jobs, and [`sample`] measures them. [`wattle`] runs jobs in Wattle, and each
//! of the other modules runs them in one peer. [`host`] contains the host functions for the
//! WebAssembly peers, and [`values`] those on values.

#![allow(
    clippy::indexing_slicing,
    reason = "the host functions serve modules that Wattle made, and a bench that cannot run panics"
)]

pub mod bare;
pub mod host;
pub mod interpreter;
pub mod jobs;
pub mod monty;
pub mod quickjs;
pub mod sample;
pub mod values;
pub mod wattle;

/// The result type of this crate. The error is a message for the person who runs the benchmark.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
