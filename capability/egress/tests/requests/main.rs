//! The guard at work against servers on loopback and resolvers that lie.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod addresses;
mod answers;
mod redirects;
mod site;
