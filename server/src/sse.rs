//! The events of a run as the frames of an SSE stream.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderName;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::{CancellationToken, DropGuard};
use wattle_agent::Sink;
use wattle_agent::machine::{Envelope, Event};

use crate::error::stream_error;
use crate::request::SessionId;

/// Maximum number of unread events. If there are more, the run is cancelled. Two complete answers
/// have fewer tokens than this.
const BEHIND: usize = 10_000;

/// The sending end: the sink of one run. [`finish`](Frames::finish) sends the last event, so that a
/// client that has received it finds the session saved.
pub(crate) struct Frames {
    sender: Sender<Envelope>,
    cancel: CancellationToken,
    lagged: AtomicBool,
    seen: AtomicU64,
    last: Mutex<Option<Envelope>>,
}

/// The receiving end: the body of a response. Dropping it cancels the run.
pub(crate) struct Events {
    receiver: Receiver<Envelope>,
    _cancels: DropGuard,
    /// The number of the newest event; `None` after the last one.
    newest: Option<u64>,
}

/// Creates both ends for a run that ends when the token is cancelled.
pub(crate) fn frames(cancel: CancellationToken) -> (Frames, Events) {
    let (sender, receiver) = channel(BEHIND);
    let events = Events { receiver, _cancels: cancel.clone().drop_guard(), newest: Some(0) };
    (
        Frames {
            sender,
            cancel,
            lagged: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            last: Mutex::default(),
        },
        events,
    )
}

impl Sink for Frames {
    fn emit(&self, event: &Envelope) {
        self.seen.store(event.seq, Ordering::Relaxed);
        if is_last(&event.event) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.clone());
        } else if let Err(TrySendError::Full(_)) = self.sender.try_send(event.clone()) {
            self.lagged.store(true, Ordering::Relaxed);
            self.cancel.cancel();
        }
    }
}

impl Frames {
    /// Sends the last event of a finished run.
    pub(crate) async fn finish(self) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
        match last {
            Some(last) if !self.lagged.load(Ordering::Relaxed) => self.send(last).await,
            Some(_) => self.fail(stream_error::LAGGED).await,
            None => self.fail(stream_error::BROKE_OFF).await,
        }
    }

    /// Ends the stream with an `error` event that does not come from a run.
    pub(crate) async fn fail(self, message: &str) {
        let seq = self.seen.load(Ordering::Relaxed) + 1;
        self.send(failure(seq, message)).await;
    }

    async fn send(self, event: Envelope) {
        // Fails only if the client has disconnected.
        drop(self.sender.send(event).await);
    }
}

impl Events {
    /// Returns the next event; `None` after the last one. A run that ends without a last event gets
    /// an `error` event.
    async fn next(&mut self) -> Option<Envelope> {
        let newest = self.newest?;
        let event = match self.receiver.recv().await {
            Some(event) => event,
            None => failure(newest + 1, stream_error::BROKE_OFF),
        };
        self.newest = (!is_last(&event.event)).then_some(event.seq);
        Some(event)
    }

    /// Returns the response with the events as its body.
    pub(crate) fn into_response(self, session: &SessionId, heartbeat: Duration) -> Response {
        let frames = stream::unfold(self, |mut events| async {
            let event = events.next().await?;
            Some((Ok::<_, Infallible>(frame(&event)), events))
        });
        let headers = [
            (HeaderName::from_static("x-session-id"), session.to_string()),
            (HeaderName::from_static("cache-control"), "no-store".to_owned()),
            // Without this header, nginx buffers the stream until it ends.
            (HeaderName::from_static("x-accel-buffering"), "no".to_owned()),
        ];
        (
            headers,
            Sse::new(frames).keep_alive(KeepAlive::new().interval(heartbeat).text("heartbeat")),
        )
            .into_response()
    }
}

fn is_last(event: &Event) -> bool {
    matches!(event, Event::Response { .. } | Event::Error { .. })
}

/// Returns a frame with the sequence number as `id:` and the event as `data:`.
fn frame(event: &Envelope) -> Frame {
    let data = serde_json::to_string(event).unwrap_or_default();
    Frame::default().id(event.seq.to_string()).data(data)
}

/// Returns an `error` event with a new run id: there is no run that could report the error itself.
fn failure(seq: u64, message: &str) -> Envelope {
    let run_id = ulid::Ulid::generate().to_string();
    let event = Event::Error { message: message.to_owned() };
    Envelope { root_run_id: run_id.clone(), run_id, seq, ts: wattle_agent::now_ms(), event }
}
