//! The slots for the connections of a server.

use std::net::IpAddr;
use std::sync::Arc;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::OwnedSemaphorePermit;

use crate::metrics::Metrics;

/// A slot for one connection of the server. It becomes free when all of its clones are dropped.
#[derive(Clone)]
pub(crate) struct Seat {
    /// If true, all ordinary connections are in use, and this connection accepts only one request,
    /// which must be for the server's state or have the server's own token.
    is_reserved: bool,
    /// The client's address, or `None` if it is unknown.
    peer: Option<IpAddr>,
    _permit: Arc<OwnedSemaphorePermit>,
    _counted: Arc<Counted>,
}

/// A guard that counts a connection in a gauge until the guard is dropped.
struct Counted(Gauge);

impl Seat {
    pub(crate) fn new(
        permit: OwnedSemaphorePermit,
        is_reserved: bool,
        peer: Option<IpAddr>,
        metrics: &Metrics,
    ) -> Seat {
        metrics.connections.inc();
        let counted = Counted(metrics.connections.clone());
        Seat { is_reserved, peer, _permit: Arc::new(permit), _counted: Arc::new(counted) }
    }

    /// Returns true if the connection is reserved.
    pub(crate) fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// Returns the client's address, or `None` if it is unknown.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
