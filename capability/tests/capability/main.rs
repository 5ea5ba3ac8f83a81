//! Tests of the host functions, and of the authority and the policy of programs:
//!
//! - `rows`, `forms`, `language`, `examples`, `row_effects`: the function tables, the language
//!   tables and the manuals;
//! - `programs`, `effects`, `search`, `web`: programs that call the functions;
//! - `authority`, `authority_sound`: the resources that a program can access;
//! - `policy`, `policy_effects`, `policy_oracle`, `preflight`, `service`: decisions, and their
//!   enforcement;
//! - `hostile`, `any_calls`: hostile programs, and arbitrary calls;
//! - `trust`, `remotes`: hostile repositories, servers, paths and requests, and real remotes.
//!
//! The other modules are helpers. `world` and `calls` also serve a fuzz target. `reference` and
//! `watch` are beside this folder, because tests of other packages include them. The test data is
//! also there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod any_calls;
mod authority;
mod authority_sound;
mod calls;
mod effects;
mod examples;
mod forms;
mod hostile;
mod language;
mod policy;
mod policy_effects;
mod policy_oracle;
mod preflight;
mod programs;
#[path = "../reference/mod.rs"]
mod reference;
#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
mod remotes;
mod row_effects;
mod rows;
mod search;
mod service;
mod trust;
#[path = "../watch/mod.rs"]
mod watch;
mod web;
mod world;
