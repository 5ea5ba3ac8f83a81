//! Serves a connection within its limits.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

use crate::auth;
use crate::error::ApiError;
use crate::gate::is_for_state;
use crate::seat::Seat;
use crate::settings::Limits;
use crate::state::Shared;
use crate::wire::{Pace, Wire};

/// Maximum time to send an error, and maximum time to keep reading the request after that.
const LINGER: Duration = Duration::from_secs(2);

/// Maximum time until the head of a request on a reserved connection is complete.
const RESERVED_HEAD_TIME: Duration = Duration::from_secs(2);

/// Maximum idle time of a connection before the system probes its peer.
#[cfg(target_os = "linux")]
const MAX_IDLE: Duration = Duration::from_secs(3_600);

/// Rejects a request on a reserved connection unless the request is for the server's state or has
/// the server's own token.
pub(crate) async fn admit(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let is_reserved = request.extensions().get::<Seat>().is_some_and(|seat| seat.is_reserved());
    let is_admitted =
        !is_reserved || is_for_state(&request) || auth::is_own(&shared, request.headers());
    if is_admitted {
        next.run(request).await
    } else {
        ApiError::too_many_connections(shared.limits.connections).into_response()
    }
}

/// Returns true if the response is neither a stream of events nor a protocol upgrade.
fn is_finite(status: StatusCode, headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let is_stream =
        content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    !is_stream && status != StatusCode::SWITCHING_PROTOCOLS
}

/// Makes the system end a connection, active or idle, whose peer has vanished. A peer has vanished
/// if it acknowledges nothing for `limit`.
#[cfg(target_os = "linux")]
fn watch(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    // The system's numbers are signed, and 0 is its default.
    let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 1);
    let idle = limit.clamp(Duration::from_secs(1), MAX_IDLE);
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, (idle / 4).max(Duration::from_secs(1)))?;
    sockopt::set_socket_keepalive(stream, true)?;
    Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
}

/// Makes the system check from time to time whether the peer of an idle connection has vanished.
#[cfg(not(target_os = "linux"))]
fn watch(stream: &TcpStream, _: Duration) -> io::Result<()> {
    Ok(sockopt::set_socket_keepalive(stream, true)?)
}

/// Serves requests until the client or the server ends the connection.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, router: Router, seat: Seat) {
    // Sends each frame immediately instead of waiting for a full packet.
    drop(stream.set_nodelay(true));
    if let Err(error) = watch(&stream, shared.limits.write_time) {
        tracing::debug!(%error, "the system does not watch the peer of a connection");
    }
    let stream = Arc::new(stream);
    let mut limits = shared.limits;
    if seat.is_reserved() {
        limits.head_time = limits.head_time.min(RESERVED_HEAD_TIME);
    }
    let pace = Arc::new(Pace::new(limits.write_time));
    let heard = Arc::new(AtomicBool::new(false));
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Wire::new(Arc::clone(&stream), Arc::clone(&heard), Arc::clone(&pace)));
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        heard.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(seat.clone());
        let (mut router, is_upgraded) = (router.clone(), Arc::clone(&is_upgraded));
        let pace = Arc::clone(&pace);
        async move {
            let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
            let tracked = |body| Body::new(Tracked { body, is_read: Arc::clone(&is_read) });
            let response = router.call(request.map(tracked)).await;
            response.map(|mut response| {
                // The rest of the body would be read as the next request, so the connection ends. The
                // client must know, or it sends that request in vain.
                if !is_read.load(Ordering::Relaxed)
                    && response.status() != StatusCode::SWITCHING_PROTOCOLS
                {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                pace.start(is_finite(response.status(), response.headers()));
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    is_upgraded.store(true, Ordering::Relaxed);
                }
                response
            })
        }
        .boxed()
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(!seat.is_reserved())
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

/// The body of a request, which notes when it has been read to its end.
struct Tracked {
    body: Incoming,
    is_read: Arc<AtomicBool>,
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_system_ends_connections_whose_peer_has_vanished() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let limit = Duration::from_secs(60);
        watch(&stream, limit).unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 60_000);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), limit);
        for extreme in [Duration::ZERO, Duration::MAX] {
            watch(&stream, extreme).unwrap();
        }
    }
}
