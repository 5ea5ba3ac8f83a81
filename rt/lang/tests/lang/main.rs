//! Tests of the language: accepted programs and their translations (`accepted`, `expand`,
//! `locate`), diagnostics and their fixes (`diagnostics`, `fixes`), the layout of programs
//! (`format`), and arbitrary or costly texts (`hostile`, `cost`).
//!
//! `common` and `manual` declare the host functions that the programs call. The programs and their
//! expected results are in the parent folder.

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
