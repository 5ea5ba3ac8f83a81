//! `POST /chat`: runs one message of a session and answers with the events of its run.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use wattle_agent::Trusted;
use wattle_agent::capability::files::Files;
use wattle_agent::journal::{self, RunOutcome, SharedJournal};

use crate::app::App;
use crate::body::read_json;
use crate::error::{ApiError, stream_error};
use crate::request::{self, ChatRequest, SessionId};
use crate::routes::Shared;
use crate::sessions::Turn;
use crate::sse::{Frames, frames};

/// The header that reports whether a requested trusted run is allowed: `granted` or
/// `not permitted`.
const EXEC: HeaderName = HeaderName::from_static("x-wattle-exec");

/// Queues the message for its session, and answers at once with the stream of its events. The run
/// ends when the client disconnects.
pub(crate) async fn chat(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json(request, &shared.limits).await?;
    let ChatRequest { message, session, exec } = request::read(&body)?;
    if shared.stopping.is_cancelled() {
        return Err(ApiError::stopping());
    }
    let full = |_| ApiError::too_many_runs(shared.limits.runs);
    let slot = Arc::clone(&shared.slots).try_acquire_owned().map_err(full)?;
    let turn = shared.sessions.queue(&session).await?;
    let trusted = shared.app.trusted(exec);
    let granted = exec.then_some(if trusted.is_some() { "granted" } else { "not permitted" });
    let cancel = shared.cancelled.child_token();
    let (frames, events) = frames(cancel.clone());
    let asked = Asked { session: session.clone(), message, trusted, turn, slot, cancel };
    shared.runs.spawn(converse(Arc::clone(&shared), asked, frames));
    let mut response = events.into_response(&session, shared.limits.heartbeat);
    if let Some(granted) = granted {
        response.headers_mut().insert(EXEC, HeaderValue::from_static(granted));
    }
    Ok(response)
}

/// A queued message.
struct Asked {
    session: SessionId,
    message: String,
    /// The parts and the files of a trusted run.
    trusted: Option<(Trusted, Arc<Files>)>,
    turn: Turn,
    slot: OwnedSemaphorePermit,
    cancel: CancellationToken,
}

/// Records the end of a run. A failure is only logged, so that the client still receives the
/// answer.
pub(crate) async fn settle(journal: &SharedJournal, ended: &RunOutcome) {
    let RunOutcome::Done(report) = ended else { return };
    if let Err(cause) = journal::end(journal, report).await {
        tracing::error!(run = report.run_id, %cause, "failed to record the end of a run");
    }
}

/// Waits until it is the message's turn in the session, runs the message, and saves the
/// conversation.
async fn converse(shared: Arc<Shared>, asked: Asked, frames: Frames) {
    let Asked { session, message, trusted, turn, slot: _slot, cancel } = asked;
    let _turn = tokio::select! {
        biased;
        () = cancel.cancelled() => return frames.fail(stream_error::CANCELLED).await,
        turn = turn.begin() => turn,
    };
    let app = &shared.app;
    let journal = app.journal();
    // Another process may run a message of the session.
    let held = tokio::select! {
        biased;
        () = cancel.cancelled() => return frames.fail(stream_error::CANCELLED).await,
        held = journal::lock_session(&journal, session.as_str()) => held,
    };
    let _held = match held {
        Ok(held) => held,
        Err(cause) => {
            tracing::error!(%session, %cause, "failed to lock a session");
            return frames.fail(stream_error::STORE).await;
        }
    };
    app.refresh().await;
    let history = match app.store.history(session.as_str()).await {
        Ok(history) => history,
        Err(cause) => {
            tracing::error!(%session, %cause, "failed to read a session");
            return frames.fail(stream_error::STORE).await;
        }
    };
    let exec = trusted.is_some();
    let job = app.job(&session, trusted, message, history, cancel);
    let kept = (&journal, journal::new_id(), App::origin(exec));
    let ended = match journal::run(&app.host, &*app.model, &app.settings, job, &frames, kept).await
    {
        Ok(ended) => ended,
        Err(cause) => {
            tracing::error!(%session, %cause, "failed to record a run");
            return frames.fail(stream_error::STORE).await;
        }
    };
    settle(&journal, &ended).await;
    frames.finish().await;
}
