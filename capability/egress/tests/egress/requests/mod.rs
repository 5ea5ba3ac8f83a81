//! Tests the egress client with servers on loopback and hostile resolvers.

mod addresses;
mod answers;
mod environment;
mod redirects;
mod site;
