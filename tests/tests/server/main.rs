//! The HTTP server from outside: raw bytes over TCP, answers read as they come.

mod bounds;
mod chat;
mod client;
mod gate;
mod shutdown;
mod world;
