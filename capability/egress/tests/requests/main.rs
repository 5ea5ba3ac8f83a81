//! Tests the egress client with servers on loopback and hostile resolvers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod addresses;
mod answers;
mod redirects;
mod site;
