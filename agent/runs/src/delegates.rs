//! Delegation: a run's programs can start runs of other agents.
//!
//! A child run is an ordinary run with its own id, conversation and journal. It shares the files of
//! its parent and the limits of its [`RunTree`]. Its id is derived from the call that starts it. If
//! the parent run is stopped and resumed, the repeated call therefore finds the same child run.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use wattle_capability::PortFuture;
use wattle_capability::agent::{Delegated, Delegates, Delegation};
use wattle_machine::{Bound, Ending};
use wattle_model::Model;
use wattle_rt::{Code, Failure};
use wattle_store::StoreError;

use crate::agents::Agents;
use crate::cancel::Cancel;
use crate::journal::{PendingApproval, new_id};
use crate::report::Report;
use crate::tree::{RunTree, child_id};

/// A request for a child run.
pub struct ChildRequest {
    /// The id of the child run.
    pub id: String,
    /// The name of the child run's agent.
    pub agent: String,
    /// The message to the agent.
    pub message: String,
    /// The child run's view of the tree.
    pub tree: RunTree,
    /// The handle that cancels the child run.
    pub cancel: Cancel,
}

/// The reason why a child run stopped.
pub enum ChildEnd {
    /// The child run has ended. The report of a run that ended earlier has no messages.
    Ended(Arc<Report>),
    /// The child run is waiting for these approvals.
    Waits(Vec<PendingApproval>),
}

/// The port through which a run starts child runs.
pub trait ChildRuns: Send + Sync {
    /// Starts the child run, or continues it if it exists, and waits until it stops. The error for
    /// an unknown agent lists the sources that were searched.
    fn run(&self, request: ChildRequest) -> BoxFuture<'_, Result<ChildEnd, ChildError>>;

    /// Returns the model of an agent's child runs, or `None` if it is unknown or cannot be used.
    fn model(&self, agent: &str) -> Option<Arc<dyn Model>>;

    /// Returns the agents for which child runs can be started. Their descriptions are shown to the
    /// model.
    fn agents(&self) -> Agents {
        Agents::default()
    }
}

/// The error returned if a child run cannot be started or continued.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The agent does not exist.
    #[error("{0}")]
    Unknown(String),
    /// The agent cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The child run was suspended, for example because another process drives it.
    #[error("{0}")]
    Suspended(String),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The names of the agents to which a run's programs may delegate. Clones share the list. A trait's
/// programs can add names.
#[derive(Clone, Debug, Default)]
pub struct DelegateNames(Arc<Mutex<Vec<String>>>);

impl DelegateNames {
    /// Adds the names that are not yet in the list.
    pub(crate) fn add(&self, names: &[String]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            if !known.contains(name) {
                known.push(name.clone());
            }
        }
    }

    fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The port through which the programs of one run delegate to other agents.
pub(crate) struct RunDelegates {
    pub(crate) run: String,
    /// The names of the agents to which the programs may delegate.
    pub(crate) names: DelegateNames,
    pub(crate) tree: RunTree,
    pub(crate) children: Arc<dyn ChildRuns>,
    pub(crate) cancel: Cancel,
    /// The endpoint of the run's own model.
    pub(crate) endpoint: String,
}

/// A guard that cancels a child run if the program that started it ends first. If the parent run is
/// suspended because a child run is waiting for a person, no child run is cancelled. When the
/// parent run is resumed, its repeated calls find the same child runs.
struct CancelOnDrop<'a> {
    cancel: Cancel,
    tree: &'a RunTree,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.tree.waiting().leave(self.cancel.clone());
    }
}

impl RunDelegates {
    fn check(&self, agent: &str) -> Result<(), Failure> {
        let names = self.names.list();
        if names.iter().any(|name| name == agent) {
            return Ok(());
        }
        let names = names.join("`, `");
        let reason = format!("this run may not ask the agent `{agent}`; it may ask `{names}`");
        Err(Failure::new(Code::EACCESS, reason))
    }

    async fn ask_child(&self, delegation: Delegation) -> Result<Delegated, Failure> {
        let Delegation { agent, message, key } = delegation;
        self.check(&agent)?;
        // Only the calls of a recorded run have keys. Other runs are never resumed, so their calls
        // never have to find the same child run again.
        let id = key.map_or_else(new_id, |key| child_id(&self.run, &key));
        let cancel = self.cancel.child();
        let tree = self.tree.child(&self.run, &id)?;
        let _guard = CancelOnDrop { cancel: cancel.clone(), tree: &self.tree };
        let request = ChildRequest {
            id: id.clone(),
            agent: agent.clone(),
            message,
            tree: tree.clone(),
            cancel,
        };
        let end = self.children.run(request).await.map_err(|error| match error {
            ChildError::Unknown(why) => Failure::new(Code::ENOENT, why),
            ChildError::Refused(why) | ChildError::Suspended(why) => {
                Failure::new(Code::EREMOTE, why)
            }
            ChildError::Store(error) => Failure::new(Code::EREMOTE, error.to_string()),
        })?;
        match end {
            ChildEnd::Ended(report) => {
                // The child run may have ended in another process.
                tree.charge_up_to(report.usage);
                if tree.report() {
                    self.tree.child_usage().add(report.usage);
                }
                answer(&agent, &report.ending).map(Delegated::Answer)
            }
            ChildEnd::Waits(waiting) => {
                self.tree.waiting().begin();
                let each = waiting.into_iter().map(|waiting| question(&id, waiting));
                Ok(Delegated::Waits(each.collect()))
            }
        }
    }
}

impl Delegates for RunDelegates {
    fn ask(&self, delegation: Delegation) -> PortFuture<'_, Delegated> {
        Box::pin(self.ask_child(delegation))
    }

    fn is_elsewhere(&self, agent: &str) -> bool {
        self.children.model(agent).is_none_or(|model| model.endpoint() != self.endpoint)
    }
}

/// The separator between the id of a child run and the id of a call that the child run makes.
pub(crate) const SEPARATOR: char = '/';

/// Converts a question that a child run asks into the question that its parent asks. The result
/// begins with the id of the waiting call, even if that call belongs to a more deeply nested run.
fn question(child: &str, waiting: PendingApproval) -> String {
    let PendingApproval { call, question } = waiting;
    if call.contains(SEPARATOR) {
        format!("{call}: {question}")
    } else {
        format!("{child}{SEPARATOR}{call}: {question}")
    }
}

/// Returns the pending approval for a question. `own` is the id of this run's call that asks the
/// question. If the question comes from a child run, the approval names the child's call instead.
pub(crate) fn approval(own: &str, question: String) -> PendingApproval {
    let below = question.split_once(": ").filter(|(call, _)| {
        let parts = call.split_once(SEPARATOR);
        parts.is_some_and(|(run, call)| run.parse::<ulid::Ulid>().is_ok() && !call.contains(' '))
    });
    match below {
        Some((call, question)) => {
            PendingApproval { call: call.to_owned(), question: question.to_owned() }
        }
        None => PendingApproval { call: own.to_owned(), question },
    }
}

/// Returns the answer of a run that has ended, or a failure if the run has no answer.
fn answer(agent: &str, ending: &Ending) -> Result<String, Failure> {
    let failed = |code| {
        let text = ending.text();
        Err(Failure::new(code, format!("the agent `{agent}` did not finish: {text}")))
    };
    match ending {
        Ending::Answered { text, .. } => Ok(text.clone()),
        Ending::Exhausted { bound: Bound::Time, .. } => failed(Code::ETIME),
        Ending::Exhausted { bound: Bound::Steps, text, .. } if !text.starts_with("stopped: ") => {
            Ok(text.clone())
        }
        Ending::Exhausted { .. } => failed(Code::EBUDGET),
        Ending::Cancelled { .. } => failed(Code::ECANCEL),
        Ending::Blocked { .. } => failed(Code::EACCESS),
        Ending::Failed { .. } => failed(Code::EREMOTE),
        Ending::Invalid { .. } => failed(Code::ETRFM),
    }
}
