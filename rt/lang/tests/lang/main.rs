//! Tests of the language: what is accepted and its translation (`accepted`, `expand`, `locate`),
//! diagnostics and their fixes (`diagnostics`, `fixes`), the layout of programs (`format`), and any
//! or costly text (`hostile`, `cost`).
//!
//! `common` and `manual` have the host functions that the programs call. The programs and their
//! expected results are in the folder above.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod accepted;
mod common;
mod cost;
mod diagnostics;
mod expand;
mod fixes;
mod format;
mod hostile;
mod locate;
mod manual;
