//! What the server serves: the parts that its runs are made of.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_agent::capability::ai::Inference;
use wattle_agent::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::machine::Message;
use wattle_agent::model::Model;
use wattle_agent::{Access, Host, Job, Settings, Store};

use crate::request::SessionId;

/// The parts of the runs that come in over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// What all runs share.
    pub host: Host,
    /// The model that decides each step.
    pub model: Arc<dyn Model>,
    /// The model that programs may ask; `None` withholds `ai` from them.
    pub inference: Option<Arc<dyn Inference>>,
    /// Bounds and policies of a run.
    pub settings: Settings,
    /// Sessions and their state.
    pub store: Store,
    /// Where runs leave their `_steps.jsonl`; `None` leaves none.
    pub workdir: Option<PathBuf>,
}

impl App {
    /// What a run for that message is made of. Its files are an overlay over nothing, whoever asks: a client has no say in
    /// what its run may touch.
    pub(crate) fn job(
        &self,
        session: &SessionId,
        message: String,
        history: Vec<Message>,
        cancel: CancellationToken,
    ) -> Job {
        let access = Access {
            files: Arc::new(Files::overlay(None, OVERLAY_LIMIT)),
            state: Arc::new(self.store.state(session.as_str())),
            network: Arc::new(self.host.egress().clone()),
            inference: self.inference.clone(),
        };
        Job {
            message,
            history,
            session_id: Some(session.to_string()),
            grants: Arc::new(access.grants()),
            workdir: self.workdir.clone(),
            cancel,
        }
    }
}
