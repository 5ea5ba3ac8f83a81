//! One connection, served within its limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use crate::error::ApiError;
use crate::routes::Shared;
use crate::settings::Limits;
use crate::wire::Wire;

/// Maximum time to send an error, and maximum time to keep reading afterwards.
const LINGER: Duration = Duration::from_secs(2);

/// Serves requests until the client or the server ends the connection.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, router: Router) {
    // Sends each frame at once instead of waiting for a full packet.
    drop(stream.set_nodelay(true));
    let limits = shared.limits;
    let heard = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Wire::new(stream, Arc::clone(&heard), limits.write_time));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        heard.store(true, Ordering::Relaxed);
        let mut router = router.clone();
        async move { router.call(request.map(Body::new)).await }.boxed()
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(limits.head_bytes)
        .max_headers(limits.headers)
        .serve_connection(io, service);
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
            () = shared.aborted.cancelled() => return,
            () = shared.stopping.cancelled(), if !is_stopping => is_stopping = true,
        }
        Pin::new(&mut connection).graceful_shutdown();
    };
    let stream = connection.into_parts().io.into_inner().into_inner();
    let unheard = !heard.load(Ordering::Relaxed);
    match ended.err().and_then(|error| refusal(&error, &limits)) {
        Some(error) if unheard => refuse(stream, &error).await,
        _ if is_stopping => {}
        _ => linger(stream).await,
    }
}

/// Returns the error for a client whose request could not be read.
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

/// Sends an error as the connection's only answer.
pub(crate) async fn refuse(mut stream: TcpStream, error: &ApiError) {
    let answer = error.on_the_wire();
    if let Ok(Ok(())) = timeout(LINGER, stream.write_all(answer.as_bytes())).await {
        linger(stream).await;
    }
}

/// Reads and discards what the client still sends, for a limited time. Closing at once would reset
/// the connection, and a client that is still sending would lose the answer.
async fn linger(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut sink = [0_u8; 8 << 10];
    let drained = async { while matches!(stream.read(&mut sink).await, Ok(1..)) {} };
    drop(timeout(LINGER, drained).await);
}
