//! The server, from listening to shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::join_all;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wattle_agent::{Store, Tenant};

use crate::app::App;
use crate::connection;
use crate::error::{ApiError, ServeError};
use crate::revoked;
use crate::router::router;
use crate::seat::Seat;
use crate::settings::ServerSettings;
use crate::state::Shared;

/// Maximum time to wait for connections to close before they are aborted.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Delay after a failure to accept a connection, for example because file descriptors or memory ran
/// out.
const STARVED: Duration = Duration::from_millis(100);

/// A listening server. It accepts connections once it [runs](Server::run).
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens on the address in the settings.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this machine, or is not permitted.
    pub async fn bind(settings: ServerSettings, app: App) -> Result<Server, ServeError> {
        let listen = settings.listen;
        let failed = |cause| ServeError { listen, cause };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, shared: Arc::new(Shared::new(settings, app)) })
    }

    /// Returns the address that the server listens on, with the actual port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Resumes the open runs of a previous server and serves until `shutdown` is cancelled. Then
    /// the server accepts no more connections and starts no more runs. Active runs may continue for
    /// the grace period. Runs that are still active afterwards are suspended, and the next server
    /// resumes them. Every stream receives a final frame.
    ///
    /// Servers that share a store take over each other's runs: a server that is stopped hands over
    /// each run at the run's next turn, and the runs of a server that crashed are taken over by
    /// another server.
    pub async fn run(self, shutdown: CancellationToken) {
        let Server { listener, shared, .. } = self;
        let connections = TaskTracker::new();
        let (resuming, store) = (Arc::clone(&shared), shared.app.own().store.file().clone());
        let tidying = tokio::spawn(async move { store.keep_tidy().await });
        let revoking = Arc::clone(&shared);
        let revoking = tokio::spawn(async move { revoked::watch(&revoking).await });
        tokio::spawn(async move {
            let own = resuming.app.own().store.clone();
            let tenants = own.file().tenants_with_open_runs().await.unwrap_or_default();
            // A tenant whose runs wait for slots delays no other tenant.
            let resumed =
                join_all(tenants.iter().map(async |tenant| match resuming.app.tenant(tenant) {
                    Ok(parts) => resuming.service.resume_open(&parts.store).await,
                    Err(why) => tracing::error!(%tenant, why, "failed to open a tenant"),
                }));
            tokio::join!(resumed, look_after(&resuming, own.file()));
        });
        accept(listener, &shared, &connections, &shutdown).await;
        tidying.abort();
        revoking.abort();
        shared.drain().await;
        shared.stopping.cancel();
        connections.close();
        if timeout(LAST_CALL, connections.wait()).await.is_err() {
            shared.aborted.cancel();
            connections.wait().await;
        }
        // The clients are gone, so programs outside runs end, and their sessions are settled.
        shared.tasks.close();
        if timeout(LAST_CALL, shared.tasks.wait()).await.is_err() {
            tracing::warn!("tasks of requests did not end in time");
        }
    }
}

/// Drives the runs of all tenants until the service stops. Skips runs that another process is
/// driving.
async fn look_after(shared: &Shared, store: &Store) {
    let open = |tenant: &Tenant| match shared.app.tenant(tenant) {
        Ok(parts) => Some(parts.store.clone()),
        Err(why) => {
            tracing::error!(%tenant, why, "failed to open a tenant");
            None
        }
    };
    shared.service.look_after(store, open).await;
}

/// Accepts connections until `shutdown` is cancelled, and then stops listening.
async fn accept(
    listener: TcpListener,
    shared: &Arc<Shared>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) {
    let router = router(shared);
    let seats = Seats {
        connections: Arc::new(Semaphore::new(
            shared.limits.connections.min(Semaphore::MAX_PERMITS),
        )),
        reserved: Arc::new(Semaphore::new(shared.limits.reserved())),
        refusals: Arc::new(Semaphore::new(shared.limits.refusals())),
    };
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => seats.take(stream, shared, &router, tasks),
            Err(cause) => {
                tracing::warn!(%cause, "failed to accept a connection");
                sleep(STARVED).await;
            }
        }
    }
}

/// The slots for connections and for error responses to excess connections.
struct Seats {
    connections: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

impl Seats {
    /// Serves the connection if an ordinary or reserved slot is free. Otherwise responds with an
    /// error or closes the connection.
    fn take(&self, stream: TcpStream, shared: &Arc<Shared>, router: &Router, tasks: &TaskTracker) {
        let acquire = |slots: &Arc<Semaphore>| Arc::clone(slots).try_acquire_owned().ok();
        let ordinary = acquire(&self.connections).map(|permit| (permit, false));
        let seat = ordinary.or_else(|| acquire(&self.reserved).map(|permit| (permit, true)));
        if let Some((permit, is_reserved)) = seat {
            let (shared, router) = (Arc::clone(shared), router.clone());
            let peer = stream.peer_addr().ok().map(|address| address.ip());
            let seat = Seat::new(permit, is_reserved, peer, &shared.metrics);
            tasks.spawn(connection::serve(stream, shared, router, seat));
        } else if let Some(permit) = acquire(&self.refusals) {
            let error = ApiError::too_many_connections(shared.limits.connections);
            tasks.spawn(async move {
                connection::refuse(&stream, &error).await;
                drop(permit);
            });
        }
    }
}
