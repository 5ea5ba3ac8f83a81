//! Delegation: a run's programs can start runs of other agents.
//!
//! A child run is an ordinary run with its own id, conversation and journal. It shares the files of
//! its parent and the limits of its [`RunTree`]. Its id is derived from the call that starts it. If
//! the parent run is stopped and resumed, the repeated call therefore finds the same child run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use wattle_capability::PortFuture;
use wattle_capability::agent::{Delegated, Delegates, Delegation};
use wattle_machine::{Bound, Ending, Usage};
use wattle_rt::{Code, Failure};

use crate::agents::Agents;
use crate::cancel::Cancel;
use crate::error::StoreError;
use crate::journal::{ParentRun, PendingApproval, new_id};
use crate::meter::Meter;

/// Maximum depth of a child run. The run that a person or a client started has depth 0.
pub(crate) const MAX_DEPTH: usize = 3;

/// Maximum number of child runs in one tree.
const MAX_CHILDREN: u32 = 256;

/// A run's view of its tree. The tree consists of the run that a person or a client started, its
/// child runs, and their child runs. All views of a tree share its limits.
#[derive(Clone, Debug)]
pub struct RunTree {
    /// The depth of the run in its tree; 0 for the root run.
    pub(crate) depth: usize,
    /// The parent run and the root run, or `None` if the run is itself the root.
    above: Option<ParentRun>,
    /// A meter of child-run usage that has not yet been charged to the run.
    pub(crate) child_usage: Meter,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Number of child runs.
    children: AtomicU32,
    /// Maximum number of tokens that all runs in the tree may use together.
    max_tokens: Option<u64>,
    /// Number of tokens used so far.
    tokens: Mutex<u64>,
    /// The lock that a run of the tree holds while it records a turn.
    recording: tokio::sync::Mutex<()>,
}

impl RunTree {
    /// Creates the tree of a run that a person or a client starts.
    #[must_use]
    pub fn new(max_tokens: Option<u64>) -> RunTree {
        let shared = Shared {
            children: AtomicU32::new(0),
            max_tokens,
            tokens: Mutex::default(),
            recording: tokio::sync::Mutex::default(),
        };
        RunTree { depth: 0, above: None, child_usage: Meter::default(), shared: Arc::new(shared) }
    }

    /// Creates the tree for a child run that is resumed only so that it can end. No parent run
    /// waits for it.
    pub(crate) fn ending(above: ParentRun) -> RunTree {
        RunTree { depth: MAX_DEPTH, above: Some(above), ..RunTree::new(None) }
    }

    /// Returns the id of the root run. `own` is the id of this run.
    pub(crate) fn root<'a>(&'a self, own: &'a str) -> &'a str {
        self.above.as_ref().map_or(own, |above| above.root.as_str())
    }

    /// Returns the parent run and the root run, or `None` if the run is itself the root.
    pub(crate) fn parent(&self) -> Option<ParentRun> {
        self.above.clone()
    }

    /// Returns true if the run is the root of its tree.
    pub(crate) fn is_top(&self) -> bool {
        self.above.is_none()
    }

    /// Locks the tree for recording a turn. No other run of the tree can record one until the guard
    /// is dropped.
    pub(crate) async fn record(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.shared.recording.lock().await
    }

    /// Adds the usage of a request to the number of tokens used.
    pub(crate) fn charge(&self, usage: &Usage) {
        let mut tokens = self.shared.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = tokens.saturating_add(usage.total());
    }

    /// Returns the tree's token limit if it is used up, or `None` if tokens are left or there is no
    /// limit.
    pub(crate) fn exhausted(&self) -> Option<u64> {
        let tokens = *self.shared.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.max_tokens.filter(|max| tokens >= *max)
    }

    /// Returns the view of the tree for a new child run of the run `own`. Fails if the tree's limit
    /// on depth, child runs or tokens is reached.
    fn child(&self, own: &str) -> Result<RunTree, Failure> {
        if self.depth >= MAX_DEPTH {
            let reason = format!(
                "agents may ask agents {MAX_DEPTH} levels deep, and this run is at that depth"
            );
            return Err(Failure::new(Code::EBOUND, reason));
        }
        let shared = &self.shared;
        if shared.children.fetch_add(1, Ordering::Relaxed) >= MAX_CHILDREN {
            let reason = format!("the task has asked other agents {MAX_CHILDREN} times already");
            return Err(Failure::new(Code::EBOUND, reason));
        }
        if let Some(max) = self.exhausted() {
            let reason = format!("the {max} tokens of the task are used up");
            return Err(Failure::new(Code::EBUDGET, reason));
        }
        let above = Some(ParentRun { run: own.to_owned(), root: self.root(own).to_owned() });
        let (depth, child_usage) = (self.depth + 1, Meter::default());
        Ok(RunTree { depth, above, child_usage, shared: Arc::clone(shared) })
    }
}

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
    /// The child run has ended.
    Ended {
        /// The ending of the child run.
        ending: Ending,
        /// Model usage of the child run and its descendants.
        usage: Usage,
    },
    /// The child run is waiting for these approvals.
    Waits(Vec<PendingApproval>),
}

/// The port through which a run starts child runs.
pub trait ChildRuns: Send + Sync {
    /// Starts the child run, or continues it if it exists, and waits until it stops. The error for
    /// an unknown agent lists the sources that were searched.
    fn run(&self, request: ChildRequest) -> BoxFuture<'_, Result<ChildEnd, ChildError>>;

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
    /// If true, a child run is waiting for a person, so this run must wait, too.
    pub(crate) waits: AtomicBool,
}

/// A guard that cancels a child run if the program that started it ends first. If the parent run is
/// suspended because a child run is waiting for a person, no child run is cancelled. When the
/// parent run is resumed, its repeated calls find the same child runs.
struct CancelOnDrop<'a> {
    cancel: Cancel,
    waits: &'a AtomicBool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.waits.load(Ordering::Relaxed) {
            self.cancel.cancel("the program that asked the agent has ended");
        }
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
        let _guard = CancelOnDrop { cancel: cancel.clone(), waits: &self.waits };
        let request = ChildRequest {
            id: id.clone(),
            agent: agent.clone(),
            message,
            tree: self.tree.child(&self.run)?,
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
            ChildEnd::Ended { ending, usage } => {
                self.tree.child_usage.add(usage);
                answer(&agent, ending).map(Delegated::Answer)
            }
            ChildEnd::Waits(waiting) => {
                self.waits.store(true, Ordering::Relaxed);
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
}

/// The separator between the id of a child run and the id of a call that the child run makes.
pub(crate) const SEPARATOR: char = '/';

/// Converts a question that a child run asks into the question that its parent asks. The result
/// begins with the id of the waiting call, even if that call belongs to a more deeply nested run.
fn question(child: &str, waiting: PendingApproval) -> String {
    let PendingApproval { call, question } = waiting;
    match call.contains(SEPARATOR) {
        true => format!("{call}: {question}"),
        false => format!("{child}{SEPARATOR}{call}: {question}"),
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
fn answer(agent: &str, ending: Ending) -> Result<String, Failure> {
    let failed = |code| {
        let text = ending.text();
        Err(Failure::new(code, format!("the agent `{agent}` did not finish: {text}")))
    };
    match &ending {
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

/// Returns the id of the child run that a call starts. The id sorts next to the parent run's id.
fn child_id(parent: &str, key: &str) -> String {
    let time = parent.parse::<ulid::Ulid>().map_or(0, |id| id.timestamp_ms());
    let hash = blake3::hash(format!("child run of {key}").as_bytes());
    let mut random = [0; 16];
    let bytes = hash.as_bytes().iter().take(10);
    random.iter_mut().skip(6).zip(bytes).for_each(|(to, from)| *to = *from);
    ulid::Ulid::from_parts(time, u128::from_be_bytes(random)).to_string()
}
