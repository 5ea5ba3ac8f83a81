//! The settings and the limits of the server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::names::{HostName, Origin};
use crate::token::Token;

/// The server's address, its token, the accepted names and origins, and its limits.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The bearer token that every request must carry, except those to `/healthz`.
    pub token: Token,
    /// The names that are accepted in the header `Host`. A server on a loopback address also
    /// accepts `localhost`, `127.0.0.1` and `[::1]`, and nothing else, which defeats DNS rebinding.
    /// On other addresses, an empty list accepts every name.
    pub allowed_hosts: Vec<HostName>,
    /// The origins of other sites whose pages may use the server (CORS). The server's own origin is
    /// always accepted.
    pub allowed_origins: Vec<Origin>,
    /// The limits.
    pub limits: Limits,
}

impl ServerSettings {
    /// Returns settings without additional names and origins, with the default limits.
    #[must_use]
    pub fn new(listen: SocketAddr, token: Token) -> Self {
        let (allowed_hosts, allowed_origins) = (Vec::new(), Vec::new());
        ServerSettings { listen, token, allowed_hosts, allowed_origins, limits: Limits::default() }
    }
}

/// The limits on clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a request's head, in bytes. A larger one is answered with status 431
    /// (default 32 KiB).
    pub head_bytes: usize,
    /// Maximum number of header lines of a request. A request with more is answered with status 431
    /// (default 100).
    pub headers: usize,
    /// Maximum time until a request's head is complete, and maximum idle time between requests. A
    /// slower head is answered with status 408 (default 10 s).
    pub head_time: Duration,
    /// Maximum size of a request's body, in bytes. A larger one is answered with status 413
    /// (default 1 MiB).
    pub body_bytes: usize,
    /// Maximum size of a file of a session, in bytes. A larger one is answered with status 413
    /// (default 16 MiB).
    pub file_bytes: usize,
    /// Maximum number of requests of one token in a minute. Further ones are answered with status
    /// 429 (default 1,200).
    pub requests_per_minute: u32,
    /// Maximum number of programs that run at once outside of runs. Further ones are answered with
    /// status 503 (default 16).
    pub programs: usize,
    /// Maximum time until a request's body is complete. A slower one is answered with status 408
    /// (default 30 s).
    pub body_time: Duration,
    /// Maximum time that a write waits for the client before its connection is closed (default 60
    /// s).
    pub write_time: Duration,
    /// Maximum number of open connections. Further ones are answered with status 503 (default 1,024).
    pub connections: usize,
    /// Maximum number of runs, including those that wait for their turn in a session. Further ones
    /// are answered with status 503 (default 64).
    pub runs: usize,
    /// Maximum number of active runs that one token of the store started. Further ones are answered
    /// with status 429 (default 16). The server's own token has the limit of all runs.
    pub runs_per_token: usize,
    /// Maximum number of waiting messages of one session. Further ones are answered with status 429
    /// (default 8).
    pub waiting: usize,
    /// The time between the heartbeats of a stream (default 15 s).
    pub heartbeat: Duration,
    /// Maximum time that runs continue after the server was asked to stop. The others go on at the
    /// next start (default 30 s).
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 32 << 10,
            headers: 100,
            head_time: Duration::from_secs(10),
            body_bytes: 1 << 20,
            file_bytes: 16 << 20,
            requests_per_minute: 1_200,
            programs: 16,
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            connections: 1_024,
            runs: 64,
            runs_per_token: 16,
            waiting: 8,
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(30),
        }
    }
}
