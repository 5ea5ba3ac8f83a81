//! Serves a connection within its limits.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::metrics::gauge::Gauge;
use rustix::net::{Shutdown, shutdown};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tower::Service;

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::settings::Limits;
use crate::state::Shared;
use crate::wire::Wire;

/// Maximum time to send an error, and maximum time to keep reading the request after that.
const LINGER: Duration = Duration::from_secs(2);

/// A slot for one connection of the server. It becomes free when all of its clones are dropped.
#[derive(Clone)]
pub(crate) struct Seat {
    _permit: Arc<OwnedSemaphorePermit>,
    _counted: Arc<Counted>,
}

/// A guard that counts a connection in a gauge until the guard is dropped.
struct Counted(Gauge);

impl Seat {
    pub(crate) fn new(permit: OwnedSemaphorePermit, metrics: &Metrics) -> Seat {
        metrics.connections.inc();
        let counted = Counted(metrics.connections.clone());
        Seat { _permit: Arc::new(permit), _counted: Arc::new(counted) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Serves requests until the client or the server ends the connection.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, router: Router, seat: Seat) {
    // Sends each frame immediately instead of waiting for a full packet.
    drop(stream.set_nodelay(true));
    let stream = Arc::new(stream);
    let limits = shared.limits;
    let heard = Arc::new(AtomicBool::new(false));
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Wire::new(Arc::clone(&stream), Arc::clone(&heard), limits.write_time));
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        heard.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(seat.clone());
        let (mut router, is_upgraded) = (router.clone(), Arc::clone(&is_upgraded));
        async move {
            let response = router.call(request.map(Body::new)).await;
            if let Ok(response) = &response
                && response.status() == StatusCode::SWITCHING_PROTOCOLS
            {
                is_upgraded.store(true, Ordering::Relaxed);
            }
            response
        }
        .boxed()
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_header_size(limits.head_bytes)
            .max_headers(limits.headers)
            .serve_connection(io, service)
            .with_upgrades()
    );
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = shared.aborted.cancelled() => return,
            () = shared.stopping.cancelled(), if !is_stopping => is_stopping = true,
        }
        connection.as_mut().graceful_shutdown();
    };
    if is_upgraded.load(Ordering::Relaxed) {
        return;
    }
    let unheard = !heard.load(Ordering::Relaxed);
    match ended.err().and_then(|error| refusal(&error, &limits)) {
        Some(error) if unheard => refuse(&stream, &error).await,
        _ if is_stopping => {}
        _ => linger(&stream).await,
    }
}

/// Returns the error to send to a client whose request could not be read. Returns `None` if the
/// connection itself failed.
fn refusal(error: &hyper::Error, limits: &Limits) -> Option<ApiError> {
    if error.is_timeout() {
        Some(ApiError::slow("head", limits.head_time))
    } else if error.is_parse_too_large() {
        Some(ApiError::head_too_large())
    } else if error.is_parse() {
        Some(ApiError::not_http())
    } else {
        None
    }
}

/// Sends an error as the connection's only response.
pub(crate) async fn refuse(stream: &TcpStream, error: &ApiError) {
    let answer = error.on_the_wire();
    if let Ok(Ok(())) = timeout(LINGER, write_all(stream, answer.as_bytes())).await {
        linger(stream).await;
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads and discards the rest of the client's request, for at most [`LINGER`]. Closing immediately
/// would reset the connection, and a client that is still sending would not receive the response.
async fn linger(stream: &TcpStream) {
    if shutdown(stream, Shutdown::Write).is_err() {
        return;
    }
    let mut sink = [0_u8; 8 << 10];
    let drained = async {
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut sink) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return,
            }
        }
    };
    drop(timeout(LINGER, drained).await);
}
