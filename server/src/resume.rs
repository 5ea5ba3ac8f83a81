//! Resuming the open runs of a killed server.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_agent::journal::{self, ResumeError, RunRecord, Status};
use wattle_agent::machine::Envelope;

use crate::app::App;
use crate::chat::settle;
use crate::request::SessionId;
use crate::routes::Shared;

/// Resumes every open run that a server started and that no process holds. Nobody receives the
/// events of these runs; their answers are saved in their sessions.
pub(crate) async fn resume_all(shared: Arc<Shared>) {
    let open = match shared.app.journal().runs(Some(Status::Open)).await {
        Ok(open) => open,
        Err(cause) => return tracing::error!(%cause, "failed to list the open runs"),
    };
    // The oldest first, so that the runs of a session keep their order.
    for run in open.into_iter().rev().filter(App::is_own) {
        let Some(session) = run.session.clone().and_then(SessionId::new) else { continue };
        let slot = tokio::select! {
            () = shared.stopping.cancelled() => return,
            slot = Arc::clone(&shared.slots).acquire_owned() => slot,
        };
        let Ok(turn) = shared.sessions.queue(&session).await else { continue };
        let cancel = shared.cancelled.child_token();
        let of = Arc::clone(&shared);
        shared.runs.spawn(async move {
            let _slot = slot;
            let _turn = turn.begin().await;
            resume(&of, &session, &run, cancel).await;
        });
    }
}

async fn resume(shared: &Shared, session: &SessionId, run: &RunRecord, cancel: CancellationToken) {
    let (app, journal, id) = (&shared.app, shared.app.journal(), run.id.as_str());
    let _held = match journal::lock_session(&journal, session.as_str()).await {
        Ok(held) => held,
        Err(cause) => return tracing::error!(%session, %cause, "failed to lock a session"),
    };
    let nobody = |_: &Envelope| {};
    let resumed = app.resumed(session.as_str(), run, cancel);
    match journal::resume(&app.host, &*app.model, id, resumed, &nobody, &journal).await {
        Ok(ended) => {
            tracing::info!(run = id, "resumed an open run");
            settle(&journal, &ended).await;
        }
        Err(ResumeError::Held(_) | ResumeError::Ended(_)) => {}
        Err(cause @ ResumeError::Parked { .. }) => {
            tracing::warn!(
                run = id,
                "{cause}; `wattle session release {id}` allows another attempt at the next start"
            );
        }
        Err(cause) => tracing::error!(run = id, %cause, "failed to resume an open run"),
    }
}
