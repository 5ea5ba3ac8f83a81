//! The events of a run as server-sent events and as WebSocket messages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::http::HeaderName;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wattle_agent::host::TenantStore;
use wattle_agent::host::machine::{Envelope, Event};
use wattle_agent::host::service::{Chunks, FollowError, Follower, RunService, TreeFollower};

/// A guard that cancels a run if the guard is dropped before it is disarmed. Used for runs that
/// must not continue without their client.
pub(crate) struct CancelOnDrop(Option<(RunService, TenantStore, String)>);

/// The reason for cancelling a run whose client disconnected.
const DISCONNECTED: &str = "the client closed the connection";

impl CancelOnDrop {
    /// Creates a guard for a run.
    pub(crate) fn new(service: RunService, store: TenantStore, run: String) -> CancelOnDrop {
        CancelOnDrop(Some((service, store, run)))
    }

    /// Disarms the guard: the run continues when the guard is dropped.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((service, store, run)) = self.0.take() else { return };
        tokio::spawn(async move {
            if let Err(cause) = service.cancel(&store, &run, DISCONNECTED).await {
                tracing::warn!(run, %cause, "failed to cancel a run");
            }
        });
    }
}

/// The source of a stream's events.
pub(crate) enum Source {
    /// The events of one run.
    Run {
        follower: Follower,
        /// The sequence number of the latest recorded event that was sent.
        newest: u64,
    },
    /// The events of a run and all its descendants.
    Tree(TreeFollower),
}

impl Source {
    /// Creates a source of a run's events. `follower` must start after the event with the sequence
    /// number `after`.
    pub(crate) fn run(follower: Follower, after: u64) -> Source {
        Source::Run { follower, newest: after }
    }

    /// Returns the next event and its `id`, or `None` after the last event. Only recorded events
    /// have an id, so a client that reconnects sends the id of the last recorded event that it
    /// received.
    async fn next(&mut self) -> Result<Option<(Arc<Envelope>, Option<String>)>, FollowError> {
        match self {
            Source::Run { follower, newest } => {
                let Some(event) = follower.next().await? else { return Ok(None) };
                let id = (event.seq > *newest).then(|| event.seq.to_string());
                *newest = event.seq.max(*newest);
                Ok(Some((event, id)))
            }
            Source::Tree(follower) => {
                let next = follower.next().await?;
                Ok(next.map(|next| (next.event, next.cursor.map(|cursor| cursor.to_string()))))
            }
        }
    }

    /// Returns true if no event follows this event.
    fn is_last(&self, event: &Event) -> bool {
        // Child runs may end after the root run of their tree.
        matches!(self, Source::Run { .. })
            && matches!(event, Event::Response { .. } | Event::Error { .. })
    }
}

/// The events of a stream in the form that the client requested.
pub(crate) struct RunEvents {
    source: Source,
    /// The converter from events to chunks, or `None` if the client did not request chunks.
    chunks: Option<Chunks>,
    ready: VecDeque<Piece>,
}

/// A stream frame or a WebSocket message.
struct Piece {
    text: String,
    id: Option<String>,
    /// If true, no other frame or message follows.
    is_last: bool,
}

impl RunEvents {
    /// Creates a stream of a source's events, as chunks if `as_chunks` is true, and otherwise
    /// unchanged.
    pub(crate) fn new(source: Source, as_chunks: bool) -> RunEvents {
        let chunks = as_chunks.then(Chunks::default);
        RunEvents { source, chunks, ready: VecDeque::new() }
    }

    async fn next(&mut self) -> Result<Option<Piece>, FollowError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            let Some((event, id)) = self.source.next().await? else { return Ok(None) };
            let is_last = self.source.is_last(&event.event);
            let texts = match &mut self.chunks {
                None => vec![text(event.as_ref())],
                Some(chunks) => chunks.next(&event).iter().map(text).collect(),
            };
            let pieces = texts.into_iter().map(|text| Piece { text, id: None, is_last: false });
            self.ready.extend(pieces);
            // Only the last chunk carries the id, so a client that received only some chunks of an
            // event gets all of them again.
            if let Some(last) = self.ready.back_mut() {
                (last.id, last.is_last) = (id, is_last);
            }
        }
    }
}

/// The state of a stream.
struct Events {
    events: RunEvents,
    is_over: bool,
    stopping: CancellationToken,
    on_disconnect: Option<CancelOnDrop>,
}

/// Returns a response that streams the events. The stream ends after the last event, or with a
/// frame of type `suspended` if the run will be resumed later.
pub(crate) fn sse(
    events: RunEvents,
    heartbeat: Duration,
    stopping: CancellationToken,
    on_disconnect: Option<CancelOnDrop>,
) -> Response {
    let events = Events { events, is_over: false, stopping, on_disconnect };
    let events = stream::unfold(events, |mut events| async {
        let frame = events.next_frame().await?;
        Some((frame, events))
    });
    frames(events, heartbeat)
}

/// Returns a response that streams server-sent events. This is the only place that creates such a
/// response, so all streams have the same headers.
pub(crate) fn frames(
    frames: impl Stream<Item = Frame> + Send + 'static,
    heartbeat: Duration,
) -> Response {
    let headers = [
        (HeaderName::from_static("cache-control"), "no-store"),
        // Without this header, nginx buffers the stream until it ends.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let keep_alive = KeepAlive::new().interval(heartbeat).text("heartbeat");
    let frames = frames.map(Ok::<_, Infallible>);
    (headers, Sse::new(frames).keep_alive(keep_alive)).into_response()
}

impl Events {
    /// Returns the next frame, or `None` at the end of the stream.
    async fn next_frame(&mut self) -> Option<Frame> {
        if self.is_over {
            return None;
        }
        let next = tokio::select! {
            next = self.events.next() => next,
            () = self.stopping.cancelled() => Err(stopped()),
        };
        match next {
            Ok(Some(Piece { text, id, is_last })) => {
                let frame = Frame::default();
                let frame = if let Some(id) = id { frame.id(id) } else { frame };
                if is_last {
                    self.is_over = true;
                    self.finish();
                }
                Some(frame.data(text))
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

    /// Disarms the guard that cancels the run on a disconnect, because the stream ended normally.
    fn finish(&mut self) {
        if let Some(guard) = &mut self.on_disconnect {
            guard.disarm();
        }
    }
}

/// Sends the events to a WebSocket, followed by `{"type":"done"}` or, if the run will be resumed
/// later, by a message of type `suspended`. Ignores messages from the client.
pub(crate) async fn websocket(
    mut socket: WebSocket,
    mut events: RunEvents,
    stopping: CancellationToken,
    write_time: Duration,
) {
    loop {
        let (message, is_last) = tokio::select! {
            next = events.next() => match next {
                Ok(Some(piece)) => (piece.text, false),
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

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn suspended(cause: &FollowError) -> String {
    json!({"type": "suspended", "message": cause.to_string()}).to_string()
}

fn stopped() -> FollowError {
    FollowError::Suspended("the server stops; follow the run again when it is back".to_owned())
}
