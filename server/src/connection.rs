//! One connection, from its first byte to its last, within its bounds.

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

/// How long a client is listened to after its last answer, so that it gets to read it.
const LINGER: Duration = Duration::from_secs(2);

/// Serves requests until the client or the server ends the connection.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, router: Router) {
    // A frame is sent when it is there, not when a packet is full.
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
    let mut told = false;
    let ended = loop {
        tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
            () = shared.aborted.cancelled() => return,
            () = shared.stopping.cancelled(), if !told => told = true,
        }
        Pin::new(&mut connection).graceful_shutdown();
    };
    let stream = connection.into_parts().io.into_inner().into_inner();
    let unheard = !heard.load(Ordering::Relaxed);
    match ended.err().and_then(|error| refusal(&error, &limits)) {
        Some(error) if unheard => refuse(stream, &error).await,
        _ if told => {}
        _ => linger(stream).await,
    }
}

/// What a client is told that did not manage to make a request.
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

/// Answers a connection that gets nothing else.
pub(crate) async fn refuse(mut stream: TcpStream, error: &ApiError) {
    let answer = error.on_the_wire();
    if let Ok(Ok(())) = timeout(LINGER, stream.write_all(answer.as_bytes())).await {
        linger(stream).await;
    }
}

/// Takes in what the client still sends, for a while. Closing at once would reset the connection, and a client that is
/// busy sending would lose the answer.
async fn linger(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut sink = [0_u8; 8 << 10];
    let drained = async { while matches!(stream.read(&mut sink).await, Ok(1..)) {} };
    drop(timeout(LINGER, drained).await);
}
