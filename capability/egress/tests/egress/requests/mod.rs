//! Tests the egress client with servers on loopback and hostile resolvers.

mod addresses;
mod answers;
mod redirects;
mod site;
