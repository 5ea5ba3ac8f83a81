//! How the server listens, and within which bounds it serves.

use std::net::SocketAddr;
use std::time::Duration;

use crate::names::{HostName, Origin};
use crate::token::Token;

/// Where the server listens, whom it admits, and its bounds.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What a client must show.
    pub token: Token,
    /// The names that requests may give as `Host`. On loopback `localhost`, `127.0.0.1` and `[::1]` are admitted too, and
    /// nothing else: a page whose name was made to resolve to this machine gets nowhere. Elsewhere an empty list admits
    /// every name.
    pub allowed_hosts: Vec<HostName>,
    /// Origins of other sites whose pages may use the server (CORS). The server's own origin always may.
    pub allowed_origins: Vec<Origin>,
    /// The bounds.
    pub limits: Limits,
}

impl ServerSettings {
    /// Listens there for clients with that token, with no further names and origins and the default bounds.
    #[must_use]
    pub fn new(listen: SocketAddr, token: Token) -> Self {
        let (allowed_hosts, allowed_origins) = (Vec::new(), Vec::new());
        ServerSettings { listen, token, allowed_hosts, allowed_origins, limits: Limits::default() }
    }
}

/// Bounds on clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a request's head, above which it is refused with 431 (default 32 KiB).
    pub head_bytes: usize,
    /// The most header lines of a request, above which it is refused with 431 (default 100).
    pub headers: usize,
    /// The time for a request's head to come whole, after which it is refused with 408; also how long a connection may
    /// idle between requests (default 10 s).
    pub head_time: Duration,
    /// The most bytes of a request's body, above which it is refused with 413 (default 1 MiB).
    pub body_bytes: usize,
    /// The time for a request's body to come whole, after which it is refused with 408 (default 30 s).
    pub body_time: Duration,
    /// How long a client may leave what it is sent unread before its connection is closed (default 60 s).
    pub write_time: Duration,
    /// The most connections at once, above which new ones are refused with 503 (default 256).
    pub connections: usize,
    /// The most runs at once, those that wait for their session's turn included, above which new ones are refused with 503
    /// (default 32).
    pub runs: usize,
    /// The most messages of one session that wait for their turn, above which new ones are refused with 429 (default 8).
    pub waiting: usize,
    /// The time between the heartbeats of a stream (default 15 s).
    pub heartbeat: Duration,
    /// How long runs may go on once the server is told to stop, before they are cancelled (default 30 s).
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 32 << 10,
            headers: 100,
            head_time: Duration::from_secs(10),
            body_bytes: 1 << 20,
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            connections: 256,
            runs: 32,
            waiting: 8,
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(30),
        }
    }
}
