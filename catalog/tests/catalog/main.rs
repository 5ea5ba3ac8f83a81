//! Tests of catalogs and their files. Each module tests one topic.
//!
//! - `front`, `layout`: parsing of front matter, and formatting of whole files.
//! - `programs`, `search`: the built-in programs, and searches for them.
//! - `layers`, `reload`: catalogs that combine folders, and rescans of the folders.
//! - `skills`: folders with instructions and scripts.
//! - `select`, `arguments`: the programs that an agent may call, and checks on their arguments.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

mod arguments;
mod front;
mod layers;
mod layout;
mod programs;
mod reload;
mod search;
mod select;
mod skills;
