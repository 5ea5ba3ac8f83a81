//! The tree of runs that a run belongs to: the budgets of its runs, and their usage.
//!
//! Each run of a tree is a node. The usage of a run is charged to its node and to the nodes of all
//! its ancestors, so the limits of a run apply to the run and all its descendants together.

mod budget;
mod restore;
mod waiting;

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use wattle_capability::ai::{Ai, AiUse};
use wattle_capability::image::{Image, ImageUse};
use wattle_machine::Usage;
use wattle_model::UsageMeter;
use wattle_rt::{Account, Code, Failure, Grants, Runtime};
use wattle_store::journal::ParentRun;

use crate::settings::Settings;
use budget::{Budget, OverBudget};

pub(crate) use restore::{RecordedRun, RecordedUse};
use waiting::Waiting;

/// Maximum depth of a child run. The run that a person or a client started has depth 0.
pub(crate) const MAX_DEPTH: usize = 3;

/// Maximum number of child runs in one tree.
const MAX_CHILDREN: usize = 256;

/// A run's view of its tree. The tree consists of the run that a person or a client started and all
/// its descendants. The default value is the view of a root run.
#[derive(Clone, Default)]
pub struct RunTree {
    /// The depth of the run in its tree; 0 for the root run.
    pub depth: usize,
    /// The parent run and the root run, or `None` if the run is itself the root.
    above: Option<ParentRun>,
    node: Arc<Node>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The nodes of all runs except the root run, keyed by run id. A run's budget changes only
    /// while this map is locked.
    children: Mutex<HashMap<String, Arc<Node>>>,
    /// A signal that a request to a model has ended.
    released: Notify,
    images: ImageUse,
    /// The lock that a run of the tree holds while it records a turn.
    recording: tokio::sync::Mutex<()>,
}

/// A run of the tree.
#[derive(Default)]
struct Node {
    above: Option<Arc<Node>>,
    budget: Mutex<Budget>,
    ai: AiUse,
    account: OnceLock<Account>,
    /// The usage of ended child runs that is not yet included in the run's own usage.
    child_usage: UsageMeter,
    waiting: Waiting,
}

impl Node {
    fn below(above: &Arc<Node>) -> Node {
        Node { above: Some(Arc::clone(above)), ai: above.ai.child(), ..Node::default() }
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns this node and its ancestors, nearest first.
    fn runs(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(self), |node| node.above.as_deref())
    }

    fn charge(&self, usage: Usage) {
        self.budget().own += usage;
        self.runs().for_each(|node| node.budget().used += usage);
    }

    /// Returns the first limit that is used up, also by `pending`, which has not been charged yet.
    /// Checks this run first, then its ancestors.
    fn over_budget(&self, pending: Usage) -> Option<OverBudget> {
        self.runs().enumerate().find_map(|(level, node)| {
            let budget = node.budget();
            let limit = budget.reached(pending)?;
            Some(OverBudget { limit, owner: (level > 0).then(|| budget.agent.clone()) })
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Node>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunTree {
    /// Creates the tree for a child run that is resumed only so that it can end. No parent run
    /// waits for it.
    pub(crate) fn ending(above: ParentRun) -> RunTree {
        RunTree { depth: MAX_DEPTH, above: Some(above), ..RunTree::default() }
    }

    /// Returns the id of the root run. `own` is the id of this run.
    pub fn root<'a>(&'a self, own: &'a str) -> &'a str {
        self.above.as_ref().map_or(own, |above| above.root.as_str())
    }

    /// Returns the parent run and the root run, or `None` if the run is itself the root.
    pub(crate) fn parent(&self) -> Option<ParentRun> {
        self.above.clone()
    }

    /// Returns the root run's view of the tree, or `None` if the tree does not contain that run.
    pub(crate) fn top(&self) -> Option<RunTree> {
        let mut node = &self.node;
        for _ in 0..self.depth {
            node = node.above.as_ref()?;
        }
        let (node, shared) = (Arc::clone(node), Arc::clone(&self.shared));
        Some(RunTree { depth: 0, above: None, node, shared })
    }

    /// Returns true if this process no longer drives the parent run, although the parent run has
    /// not ended.
    pub(crate) fn is_orphan(&self) -> bool {
        self.node.above.as_ref().is_some_and(|above| above.waiting.is_abandoned())
    }

    /// Returns true if the run is the root of its tree.
    pub(crate) fn is_top(&self) -> bool {
        self.above.is_none()
    }

    /// Locks the tree for recording a turn. No other run of the tree can record a turn until the
    /// guard is dropped.
    pub(crate) async fn record(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.shared.recording.lock().await
    }

    /// Sets the limits of the run when it begins or is resumed. Returns `grants` with the counters
    /// of the tree. Programs ask the model only while a limit is left; `meter` has what they have used
    /// since the last turn.
    pub(crate) fn bind(&self, settings: &Settings, grants: &Grants, meter: &UsageMeter) -> Grants {
        self.node.waiting.reset();
        {
            let _nodes = self.shared.lock();
            let mut budget = self.node.budget();
            budget.agent.clone_from(&settings.agent);
            budget.max_tokens = settings.machine.max_tokens_total;
            budget.max_cost = settings.machine.max_cost;
        }
        let grants = match grants.config::<Ai>() {
            Some(ai) => {
                let (tree, meter) = (self.clone(), meter.clone());
                let gate = move || {
                    let _nodes = tree.shared.lock();
                    let over = tree.node.over_budget(meter.pending())?;
                    Some(format!("the model cannot be asked: the run {over}"))
                };
                grants.clone().with(ai.counted_by(&self.node.ai).gated(Arc::new(gate)))
            }
            None => grants.clone(),
        };
        match grants.config::<Image>() {
            Some(image) => grants.with(image.counted_by(&self.shared.images)),
            None => grants,
        }
    }

    /// Returns the grants of a program that runs outside of runs. Its requests to the model count towards
    /// the limits of the settings. `meter` counts them.
    #[must_use]
    pub fn of_program(settings: &Settings, grants: &Grants, meter: &UsageMeter) -> Grants {
        RunTree::default().bind(settings, grants, meter)
    }

    /// Returns the account of the run: `own` if the run already has an account, or a new account
    /// otherwise. The new account of a child run is a child of the parent run's account.
    pub(crate) fn account(&self, runtime: &Runtime, own: Option<&Account>) -> Account {
        let above = || self.node.above.as_ref().and_then(|above| above.account.get());
        let open = || match (own, above()) {
            (Some(own), _) => own.clone(),
            (None, Some(above)) => runtime.open_child_account(above),
            (None, None) => runtime.open_account(),
        };
        self.node.account.get_or_init(open).clone()
    }

    /// Charges the usage of the run's programs.
    pub(crate) fn charge(&self, usage: Usage) {
        let _nodes = self.shared.lock();
        self.node.charge(usage);
    }

    /// Returns true if the usage of the run has not been added to its parent's usage yet, and marks
    /// it as added.
    pub(crate) fn report(&self) -> bool {
        let _nodes = self.shared.lock();
        !std::mem::replace(&mut self.node.budget().is_reported, true)
    }

    /// Charges the part of `total` that this process has not charged yet. `total` is the usage of
    /// the run and its descendants.
    pub(crate) fn charge_up_to(&self, total: Usage) {
        let _nodes = self.shared.lock();
        let known = self.node.budget().used;
        self.node.charge(total.beyond(known));
    }

    /// Returns a limit of the run or of an ancestor that is used up, or `None` if there is none.
    pub(crate) fn over_budget(&self) -> Option<OverBudget> {
        let _nodes = self.shared.lock();
        self.node.over_budget(Usage::default())
    }

    /// Waits until the run may send a request to its model. While other requests that count towards
    /// a limit are in flight, a new one may begin only if all of them fit into the rest of the
    /// limit, assuming that each uses as much as the largest one so far. Until the first request
    /// has ended, no other one may begin.
    ///
    /// # Errors
    /// If a limit of the run or of an ancestor is used up.
    pub(crate) async fn admit(&self) -> Result<Admission<'_>, OverBudget> {
        loop {
            let mut released = pin!(self.shared.released.notified());
            released.as_mut().enable();
            {
                let _nodes = self.shared.lock();
                if let Some(over) = self.node.over_budget(Usage::default()) {
                    return Err(over);
                }
                if self.node.runs().all(|node| node.budget().has_room()) {
                    self.node.runs().for_each(|node| node.budget().begin());
                    return Ok(Admission(self));
                }
            }
            released.await;
        }
    }

    /// Returns the usage of ended child runs that is not yet included in the run's own usage.
    pub(crate) fn child_usage(&self) -> &UsageMeter {
        &self.node.child_usage
    }

    /// Returns the child runs whose programs ended while another child run was waiting for a
    /// person.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.node.waiting
    }

    /// Returns the view of the tree for the child run `id` of this run, whose id is `own`. Fails if
    /// this run is at the maximum depth, or if `id` is a new run and a limit on child runs, tokens
    /// or cost is reached.
    pub(crate) fn child(&self, own: &str, id: &str) -> Result<RunTree, Failure> {
        if self.depth >= MAX_DEPTH {
            let reason = format!(
                "agents may ask agents {MAX_DEPTH} levels deep, and this run is at that depth"
            );
            return Err(Failure::new(Code::EBOUND, reason));
        }
        let mut children = self.shared.lock();
        let node = match children.get(id) {
            Some(node) => Arc::clone(node),
            None if children.len() >= MAX_CHILDREN => {
                let reason =
                    format!("the task has asked other agents {MAX_CHILDREN} times already");
                return Err(Failure::new(Code::EBOUND, reason));
            }
            None => {
                if let Some(over) = self.node.over_budget(Usage::default()) {
                    let reason = format!("no more agents can be asked: the run {over}");
                    return Err(Failure::new(Code::EBUDGET, reason));
                }
                let node = Arc::new(Node::below(&self.node));
                children.insert(id.to_owned(), Arc::clone(&node));
                node
            }
        };
        drop(children);
        let above = Some(ParentRun { run: own.to_owned(), root: self.root(own).to_owned() });
        Ok(RunTree { depth: self.depth + 1, above, node, shared: Arc::clone(&self.shared) })
    }
}

impl fmt::Debug for RunTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RunTree");
        shown.field("depth", &self.depth).field("above", &self.above).finish_non_exhaustive()
    }
}

/// A guard for a request that a run of the tree sends to its model. Dropping it ends the request.
pub(crate) struct Admission<'a>(&'a RunTree);

impl Admission<'_> {
    /// Charges the usage of the request.
    pub(crate) fn charge(&self, usage: Usage) {
        let _nodes = self.0.shared.lock();
        self.0.node.charge(usage);
        // A run's own requests are never concurrent with those of its child runs.
        self.0.node.runs().skip(1).for_each(|node| node.budget().learn(usage));
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        {
            let _nodes = self.0.shared.lock();
            self.0.node.runs().for_each(|node| node.budget().finish());
        }
        self.0.shared.released.notify_waiters();
    }
}

/// Returns the id of the child run that a call starts. `key` is the key of the call. The id sorts
/// next to the parent run's id.
pub(crate) fn child_id(parent: &str, key: &str) -> String {
    let time = parent.parse::<ulid::Ulid>().map_or(0, |id| id.timestamp_ms());
    let hash = blake3::hash(format!("child run of {key}").as_bytes());
    let mut random = [0; 16];
    let bytes = hash.as_bytes().iter().take(10);
    random.iter_mut().skip(6).zip(bytes).for_each(|(to, from)| *to = *from);
    ulid::Ulid::from_parts(time, u128::from_be_bytes(random)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_run_is_found_from_its_child_runs() {
        let tree = RunTree::default();
        let leaf = tree.child("top", "middle").unwrap().child("middle", "leaf").unwrap();
        leaf.charge(Usage { prompt: 5, ..Usage::default() });
        let top = leaf.top().unwrap();
        assert!(top.is_top() && Arc::ptr_eq(&top.node, &tree.node));
        assert_eq!(top.node.budget().used.prompt, 5);
        let above = ParentRun { run: "middle".to_owned(), root: "top".to_owned() };
        assert!(RunTree::ending(above).top().is_none());
        assert!(!leaf.is_orphan());
        tree.child("top", "middle").unwrap().waiting().abandon();
        assert!(leaf.is_orphan());
    }
}
