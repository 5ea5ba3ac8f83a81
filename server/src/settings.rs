//! The settings and the limits of the server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::names::{HostName, Origin};
use crate::token::Token;

/// The settings of the server: its address, its token, the accepted host names and origins, and its
/// limits.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The server's own bearer token. Requests with it may do anything within the server's own
    /// tenant.
    pub token: Token,
    /// The names that are accepted in the `Host` header. A server on a loopback address accepts
    /// only these names, `localhost`, `127.0.0.1` and `[::1]`, which prevents DNS rebinding. On any
    /// other address, an empty list accepts every name.
    pub allowed_hosts: Vec<HostName>,
    /// The origins of other sites whose pages may use the server (CORS). The server's own origin is
    /// always allowed.
    pub allowed_origins: Vec<Origin>,
    /// The limits that protect the server from its clients.
    pub limits: Limits,
}

impl ServerSettings {
    /// Creates settings with the default limits and without additional names or origins.
    #[must_use]
    pub fn new(listen: SocketAddr, token: Token) -> Self {
        let (allowed_hosts, allowed_origins) = (Vec::new(), Vec::new());
        ServerSettings { listen, token, allowed_hosts, allowed_origins, limits: Limits::default() }
    }
}

/// The limits that protect the server from its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a request's head, in bytes (default 32 KiB). A larger head gets status 431.
    pub head_bytes: usize,
    /// Maximum number of header lines in a request (default 100). A request with more lines gets
    /// status 431.
    pub headers: usize,
    /// Maximum time until a request's head is complete, and maximum idle time between requests
    /// (default 10 s). A slower head gets status 408.
    pub head_time: Duration,
    /// Maximum size of a request's body, in bytes (default 1 MiB). A larger body gets status 413.
    pub body_bytes: usize,
    /// Maximum size of a file in a session, in bytes (default 16 MiB). A larger file gets status
    /// 413.
    pub file_bytes: usize,
    /// Maximum number of requests per minute with one token (default 1,200). Additional requests
    /// get status 429.
    pub requests_per_minute: u32,
    /// Maximum number of programs that execute concurrently outside runs (default 16). Additional
    /// programs get status 503. A token of the store may use a quarter of them, and a tenant half
    /// of them; additional programs get status 429. An eighth is reserved for the server's own
    /// token.
    pub programs: usize,
    /// Maximum time until a request's body is complete (default 30 s). A slower body gets status
    /// 408.
    pub body_time: Duration,
    /// Maximum time that a write waits for the client before the connection is closed (default 60
    /// s). After this time, a client must read at 16 KiB/s on average, unless the response is a
    /// stream of events.
    pub write_time: Duration,
    /// Maximum number of open connections (default 1,024). Additional connections get status 503,
    /// except requests for the server's state and those with the server's own token, for which 32
    /// more connections are reserved. A token of the store may use a 16th of the connections for
    /// streams of events, and a tenant a quarter; additional streams get status 429. The tokens of
    /// the store together leave a quarter of the connections to other requests.
    pub connections: usize,
    /// Maximum number of runs, including those waiting for an earlier run of their session (default
    /// 64). Additional background runs are queued, and additional chats get status 503.
    pub runs: usize,
    /// Maximum number of runs per tenant, on all servers that share the store (default: no limit).
    /// Additional background runs are queued, and additional chats get status 429.
    pub runs_per_tenant: Option<usize>,
    /// Maximum number of queued runs per tenant (default 1,000). Additional runs get status 429.
    pub queued: usize,
    /// Maximum number of active runs that were started with one token of the store (default 16).
    /// Additional runs get status 429. The server's own token is limited only by `runs`.
    pub runs_per_token: usize,
    /// Maximum number of waiting messages in one session (default 8). Additional messages get
    /// status 429.
    pub waiting: usize,
    /// The interval between the heartbeats of a stream (default 15 s).
    pub heartbeat: Duration,
    /// Maximum time for which runs continue after the server is asked to stop (default 30 s). Runs
    /// that are still active afterwards are suspended and then resumed at the next start.
    pub grace: Duration,
}

/// Number of additional connections that are reserved for requests for the server's state and
/// requests with the server's own token.
const RESERVED: usize = 32;
/// Maximum number of excess connections that receive an error. Additional connections are closed
/// without a response.
const REFUSALS: usize = 64;
/// The same numbers for a server that accepts only few connections.
const FEW: usize = 8;

impl Limits {
    /// Returns the maximum number of connections for which these many open sockets suffice,
    /// including the reserved connections and the refused ones.
    #[must_use]
    pub fn connections_within(sockets: usize) -> usize {
        let few = (sockets / 3).min(sockets.saturating_sub(2 * FEW)).min(REFUSALS);
        few.max(sockets.saturating_sub(RESERVED + REFUSALS))
    }

    /// Returns the number of reserved connections.
    pub(crate) fn reserved(&self) -> usize {
        RESERVED.min(self.connections.max(FEW))
    }

    /// Returns the maximum number of excess connections that receive an error.
    pub(crate) fn refusals(&self) -> usize {
        REFUSALS.min(self.connections.max(FEW))
    }
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
            runs_per_tenant: None,
            queued: 1_000,
            runs_per_token: 16,
            waiting: 8,
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(30),
        }
    }
}
