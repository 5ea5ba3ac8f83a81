//! The events of a run as server-sent events and as WebSocket messages.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::http::HeaderName;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wattle_agent::TenantStore;
use wattle_agent::machine::{Envelope, Event};
use wattle_agent::service::{FollowError, Follower, RunService};

/// Cancels a run when it is dropped before it is disarmed, for clients that ask for that.
pub(crate) struct CancelOnDrop(Option<(RunService, TenantStore, String)>);

impl CancelOnDrop {
    /// Creates the guard of a run.
    pub(crate) fn new(service: RunService, store: TenantStore, run: String) -> CancelOnDrop {
        CancelOnDrop(Some((service, store, run)))
    }

    /// Lets the run go on when this is dropped.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((service, store, run)) = self.0.take() else { return };
        tokio::spawn(async move {
            if let Err(cause) = service.cancel(&store, &run).await {
                tracing::warn!(run, %cause, "failed to cancel a run");
            }
        });
    }
}

/// The state of a stream.
struct Events {
    follower: Follower,
    /// The number of the newest kept event that was sent.
    newest: u64,
    is_over: bool,
    stopping: CancellationToken,
    on_disconnect: Option<CancelOnDrop>,
}

/// Returns a response with the events as its body. The stream ends after the last event, or with a
/// frame of the type `suspended` if the run goes on later.
pub(crate) fn sse(
    follower: Follower,
    after: u64,
    heartbeat: Duration,
    stopping: CancellationToken,
    on_disconnect: Option<CancelOnDrop>,
) -> Response {
    let events = Events { follower, newest: after, is_over: false, stopping, on_disconnect };
    let frames = stream::unfold(events, |mut events| async {
        let frame = events.next_frame().await?;
        Some((Ok::<_, Infallible>(frame), events))
    });
    let headers = [
        (HeaderName::from_static("cache-control"), "no-store"),
        // Without this header, nginx buffers the stream until it ends.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let keep_alive = KeepAlive::new().interval(heartbeat).text("heartbeat");
    (headers, Sse::new(frames).keep_alive(keep_alive)).into_response()
}

impl Events {
    /// Returns the next frame. A kept event has its number as `id:`; a live one has none, so that a
    /// client that reconnects names the last kept one.
    async fn next_frame(&mut self) -> Option<Frame> {
        if self.is_over {
            return None;
        }
        let next = tokio::select! {
            next = self.follower.next() => next,
            () = self.stopping.cancelled() => Err(stopped()),
        };
        match next {
            Ok(Some(event)) => {
                let is_kept = event.seq > self.newest;
                let frame = Frame::default();
                let frame = if is_kept { frame.id(event.seq.to_string()) } else { frame };
                self.newest = self.newest.max(event.seq);
                if is_last(&event.event) {
                    self.is_over = true;
                    self.finish();
                }
                Some(frame.data(text(&event)))
            }
            Ok(None) => {
                self.finish();
                None
            }
            Err(cause) => {
                self.is_over = true;
                self.finish();
                Some(Frame::default().data(suspended(&cause)))
            }
        }
    }

    /// Keeps the run from being cancelled when the stream ends in good order.
    fn finish(&mut self) {
        if let Some(guard) = &mut self.on_disconnect {
            guard.disarm();
        }
    }
}

/// Sends the events to a WebSocket, and then `{"type":"done"}`. What the client sends is ignored.
pub(crate) async fn websocket(
    mut socket: WebSocket,
    mut follower: Follower,
    stopping: CancellationToken,
    write_time: Duration,
) {
    loop {
        let (message, is_last) = tokio::select! {
            next = follower.next() => match next {
                Ok(Some(event)) => (text(&event), false),
                Ok(None) => (json!({"type": "done"}).to_string(), true),
                Err(cause) => (suspended(&cause), true),
            },
            () = stopping.cancelled() => (suspended(&stopped()), true),
            received = socket.recv() => match received {
                Some(Ok(_)) => continue,
                _ => return,
            },
        };
        let sent = tokio::time::timeout(write_time, socket.send(Message::Text(message.into())));
        if !matches!(sent.await, Ok(Ok(()))) {
            return;
        }
        if is_last {
            drop(tokio::time::timeout(write_time, socket.send(Message::Close(None))).await);
            return;
        }
    }
}

fn text(event: &Arc<Envelope>) -> String {
    serde_json::to_string(event.as_ref()).unwrap_or_default()
}

fn suspended(cause: &FollowError) -> String {
    json!({"type": "suspended", "message": cause.to_string()}).to_string()
}

fn stopped() -> FollowError {
    FollowError::Suspended("the server stops; follow the run again when it is back".to_owned())
}

fn is_last(event: &Event) -> bool {
    matches!(event, Event::Response { .. } | Event::Error { .. })
}
