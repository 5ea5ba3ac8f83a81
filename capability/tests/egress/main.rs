//! The guard at work against servers on loopback and resolvers that lie.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod addresses;
mod answers;
mod redirects;
mod site;
