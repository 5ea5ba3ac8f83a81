//! What a server that was killed left open is taken up by the next one.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_agent::journal::{self, ResumeError, RunRecord, Status};
use wattle_agent::machine::Envelope;

use crate::app::App;
use crate::chat::settle;
use crate::request::SessionId;
use crate::routes::Shared;

/// Takes up every open run of a server that no process works on. Nobody follows them; what they answer stands in their sessions.
pub(crate) async fn take_up(shared: Arc<Shared>) {
    let open = match shared.app.journal().runs(Some(Status::Open)).await {
        Ok(open) => open,
        Err(cause) => return tracing::error!(%cause, "failed to look for runs that were left open"),
    };
    // The oldest first: those of one session in their order.
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
            go_on(&of, &session, &run, cancel).await;
        });
    }
}

async fn go_on(shared: &Shared, session: &SessionId, run: &RunRecord, cancel: CancellationToken) {
    let (app, journal, id) = (&shared.app, shared.app.journal(), run.id.as_str());
    let _held = match journal::lock_session(&journal, session.as_str()).await {
        Ok(held) => held,
        Err(cause) => return tracing::error!(%session, %cause, "failed to hold a session"),
    };
    let nobody = |_: &Envelope| {};
    let resumed = app.resumed(session.as_str(), run, cancel);
    match journal::resume(&app.host, &*app.model, id, resumed, &nobody, &journal).await {
        Ok(ended) => {
            tracing::info!(run = id, "took up a run that was left open");
            settle(&journal, &ended).await;
        }
        Err(ResumeError::Held(_) | ResumeError::Ended(_)) => {}
        Err(cause @ ResumeError::Parked { .. }) => {
            tracing::warn!(run = id, "{cause}; `wattle session release {id}` lets the next start try it again");
        }
        Err(cause) => tracing::error!(run = id, %cause, "failed to take up a run that was left open"),
    }
}
