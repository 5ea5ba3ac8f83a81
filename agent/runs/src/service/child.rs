//! Child runs: runs of other agents, started by a run's programs.
//!
//! The parent drives its child runs. If a child run waits for a person, so does its parent. The
//! person's answer resumes the root run, whose program then repeats the call that started the child
//! run.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::Files;
use wattle_model::Model;
use wattle_store::{StoreError, TenantStore};

use super::drive::Lineage;
use super::error::AnswerError;
use super::live::Outcome;
use super::queue::Position;
use super::{LiveRun, RunService};
use crate::agents::{AgentSpec, Agents};
use crate::bug::{BUG, Bug, caught};
use crate::cancel::Cancel;
use crate::delegates::{ChildEnd, ChildError, ChildRequest, ChildRuns, SEPARATOR};
use crate::hooks::RunHooks;
use crate::journal::{
    self, Approval, Journal as _, PendingApproval, RunFilter, RunRecord, RunRequest, RunSummary,
    SharedJournal, Status, record_answers,
};
use crate::parts::RunParts;
use crate::report::Report;
use crate::tree::RunTree;

/// The call id of a pending approval that asks an operator to release a child run.
const RELEASE: &str = "release";

/// Number of attempts to drive a child run that is suspended.
const ATTEMPTS: u32 = 7;
/// Delay before the second attempt. Each later delay is twice as long as the one before, so the
/// delays add up to about half a minute.
const DELAY: Duration = Duration::from_millis(500);

/// The reason for cancelling a run whose parent has ended.
const PARENT_ENDED: &str = "the run that started it has ended";

/// The reason for not driving a child run whose parent is no longer driven by this process.
const PARENT_LEFT: &str = "this process no longer drives the run that started it";

/// The port through which one run controls its child runs.
#[derive(Clone)]
struct ServiceChildren {
    service: RunService,
    store: TenantStore,
    /// The request of the parent.
    parent: Arc<RunRequest>,
    files: Option<Arc<Files>>,
    hooks: Option<Arc<dyn RunHooks>>,
}

impl RunService {
    /// Returns the port through which a run with these parts starts child runs.
    pub(super) fn children(
        &self,
        store: &TenantStore,
        run: &RunRequest,
        parts: &RunParts,
    ) -> Arc<dyn ChildRuns> {
        Arc::new(ServiceChildren {
            service: self.clone(),
            store: store.clone(),
            parent: Arc::new(run.clone()),
            files: parts.files(),
            hooks: parts.hooks.clone(),
        })
    }

    /// Ends the child runs of an ended run in the background.
    pub(super) fn end_children(&self, store: &TenantStore, run: &str) {
        let (service, store, run) = (self.clone(), store.clone(), run.to_owned());
        // Boxed, because ending a run calls this function again.
        let ending = async move { service.cancel_children(&store, &run).await }.boxed();
        self.0.tasks.spawn(ending);
    }

    /// Stops this process from driving the child runs of a run that it no longer drives, although
    /// the run has not ended. The process that resumes the run also resumes its child runs. A
    /// cancelled child run still ends in this process.
    pub(super) fn abandon_children(&self, store: &TenantStore, run: &str, live: &LiveRun) {
        let Some(tree) = live.tree.get() else { return };
        tree.waiting().abandon();
        for (_, child) in self.live_tree(store.tenant(), &live.root) {
            let parent = child.tree.get().and_then(RunTree::parent);
            let is_child = parent.is_some_and(|parent| parent.run == run);
            if is_child && !child.cancel.is_cancelled() {
                child.handed_over.cancel();
            }
        }
    }

    async fn cancel_children(&self, store: &TenantStore, run: &str) {
        let children = match open_below(store, run).await {
            Ok(children) => children,
            Err(cause) => return tracing::error!(run, %cause, "failed to list child runs"),
        };
        for child in children {
            if let Err(cause) = self.cancel(store, &child.id, PARENT_ENDED).await {
                tracing::error!(run = child.id, %cause, "failed to end a child run");
            }
        }
    }
}

impl ChildRuns for ServiceChildren {
    fn agents(&self) -> Agents {
        self.service.0.assembler.agents()
    }

    fn model(&self, agent: &str) -> Option<Arc<dyn Model>> {
        self.service.0.assembler.model(&self.parent, agent)
    }

    fn run(&self, request: ChildRequest) -> BoxFuture<'_, Result<ChildEnd, ChildError>> {
        let own = self.clone();
        // A separate task, because a program's stack is too small for starting a run.
        let task = tokio::spawn(async move {
            let hooks = own.hooks.as_deref();
            if let Some(hooks) = hooks {
                hooks.child_started(&request);
            }
            let end = caught(&request.id, own.run_child(&request)).await;
            let end = end.unwrap_or_else(|Bug| Err(ChildError::Refused(BUG.to_owned())));
            if let Some(hooks) = hooks {
                hooks.child_ended(&request.id, &end).await;
            }
            end
        });
        async move {
            task.await.unwrap_or_else(|stopped| {
                Err(ChildError::Refused(format!("the child run could not be started: {stopped}")))
            })
        }
        .boxed()
    }
}

impl ServiceChildren {
    /// Starts or resumes a child run and waits until it stops. If the child run is suspended, it is
    /// resumed after a delay instead of being reported as failed, because the parent's model would
    /// react to the failure by starting the same child run again.
    async fn run_child(&self, request: &ChildRequest) -> Result<ChildEnd, ChildError> {
        let mut delay = DELAY;
        for _ in 1..ATTEMPTS {
            match self.try_child(request).await {
                Err(ChildError::Suspended(reason)) => {
                    tracing::warn!(run = request.id, reason, "a child run is resumed again");
                }
                Err(ChildError::Store(cause)) => {
                    tracing::warn!(run = request.id, %cause, "a child run is resumed again");
                }
                stopped => return stopped,
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = request.cancel.cancelled() => {}
            }
            delay *= 2;
        }
        self.try_child(request).await
    }

    async fn try_child(&self, request: &ChildRequest) -> Result<ChildEnd, ChildError> {
        if request.tree.is_orphan() {
            return Err(ChildError::Refused(PARENT_LEFT.to_owned()));
        }
        let mut known = self.store.run(&request.id).await?;
        if let Some(ended) = known.as_ref().filter(|run| run.status == Status::Ended) {
            return Self::ended(ended);
        }
        let origin = match &mut known {
            Some(run) => {
                let agent = self.service.current_agent(&self.store, &run.start.origin).await;
                let agent = agent.map_err(ChildError::Unknown)?;
                let parent = AgentSpec::of_origin(&self.parent.origin);
                let parent = parent.map_err(ChildError::Refused)?;
                agent.delegated_by(&parent).write_to(&mut run.start.origin);
                run.start.origin.clone()
            }
            None => {
                let assembler = &self.service.0.assembler;
                assembler.child_origin(&self.store, &self.parent, &request.agent).await?
            }
        };
        let ChildRequest { id, message, tree, cancel, .. } = request;
        let (id, tree, cancel) = (id.clone(), tree.clone(), cancel.clone());
        let owner = self.service.0.limits.owner_of(self.store.tenant());
        let _permit = tokio::select! {
            permit = self.service.0.host.child_permit(tree.depth, &owner) => permit,
            () = cancel.cancelled() => None,
        };
        let root = tree.root(&id).to_owned();
        let recorded = self.store.last_event(&id).await?;
        let of = self.store.tenant();
        let (live, is_new) =
            self.service.add(of, (&id, &root), &serde_json::Value::Null, recorded, &Cancel::new());
        if is_new {
            let tree = live.tree.get_or_init(|| tree).clone();
            // If the parent was abandoned before this, the child run was not found in its tree.
            if tree.is_orphan() {
                live.handed_over.cancel();
            }
            let lineage = Lineage { tree: Some(tree), files: self.files.clone() };
            let request = RunRequest { id, origin, ..RunRequest::new(message.as_str()) };
            self.drive(request, known, Arc::clone(&live), lineage);
        }
        Ok(match self.outcome(&live, &cancel).await {
            Outcome::Ended(report) => ChildEnd::Ended(report),
            Outcome::Parked(parked) => match parked.reason {
                Some(question) => {
                    let call = RELEASE.to_owned();
                    ChildEnd::Waits(vec![PendingApproval { call, question }])
                }
                None => ChildEnd::Waits(parked.waiting),
            },
            // The process is stopping, and will suspend this run, too.
            Outcome::Suspended(_) if self.service.0.suspending.is_cancelled() => {
                std::future::pending().await
            }
            Outcome::Suspended(reason) => return Err(ChildError::Suspended(reason)),
        })
    }

    /// Waits for the outcome of a child run. Until then, cancelling `cancel` cancels the child run,
    /// even if it was started by an earlier request.
    async fn outcome(&self, live: &LiveRun, cancel: &Cancel) -> Outcome {
        tokio::select! {
            biased;
            outcome = live.outcome() => return outcome,
            () = cancel.cancelled() => {}
        }
        // If the process is stopping, the parent and the child run are suspended instead.
        if !self.service.0.suspending.is_cancelled() {
            live.cancel.cancel(cancel.reason());
        }
        live.outcome().await
    }

    /// Returns the recorded end of a child run that has ended.
    fn ended(run: &RunRecord) -> Result<ChildEnd, ChildError> {
        let RunSummary { steps, usage, ending } = run.summary.clone().ok_or_else(|| {
            ChildError::Refused(format!("the run `{}` has no recorded end", run.id))
        })?;
        let report = Report::failed(run.id.clone(), String::new());
        Ok(ChildEnd::Ended(Arc::new(Report { ending, steps, usage, ..report })))
    }

    /// Starts a background task that drives a child run until it stops, even if the caller no
    /// longer waits for it.
    fn drive(
        &self,
        request: RunRequest,
        known: Option<RunRecord>,
        live: Arc<LiveRun>,
        lineage: Lineage,
    ) {
        let (service, store) = (self.service.clone(), self.store.clone());
        self.service.0.tasks.spawn(async move {
            // A child run belongs to no session, so it never waits for a turn in a session's queue.
            let mut position = Position::default();
            let id = request.id.clone();
            match known {
                Some(run) => {
                    let driving = service.go_on(&store, &run, false, &mut position, &live, lineage);
                    service.drive_locked(&store, &id, &live, Box::pin(driving), None).await;
                }
                None => {
                    let driving = service.begin(&store, request, &mut position, &live, lineage);
                    service.drive_locked(&store, &id, &live, Box::pin(driving), None).await;
                }
            }
        });
    }
}

/// Returns the descendants of a run that have not ended. The run need not be the root of its tree.
async fn open_below(store: &TenantStore, run: &str) -> Result<Vec<RunRecord>, StoreError> {
    let parent = store.run(run).await?.and_then(|record| record.start.parent);
    let root = parent.as_ref().map_or(run, |parent| parent.root.as_str());
    let mut rest = open_children(store, root).await?;
    if parent.is_none() {
        return Ok(rest);
    }
    let (mut below, mut above) = (Vec::new(), vec![run.to_owned()]);
    while !above.is_empty() {
        let is_child = |child: &mut RunRecord| {
            child.start.parent.as_ref().is_some_and(|parent| above.contains(&parent.run))
        };
        let children: Vec<RunRecord> = rest.extract_if(.., is_child).collect();
        above = children.iter().map(|child| child.id.clone()).collect();
        below.extend(children);
    }
    Ok(below)
}

/// Returns the descendants of a root run that have not ended.
async fn open_children(store: &TenantStore, root: &str) -> Result<Vec<RunRecord>, StoreError> {
    let mut open = Vec::new();
    for status in [Status::Open, Status::Parked] {
        let tree_of = Some(root.to_owned());
        open.extend(store.runs(RunFilter { tree_of, ..RunFilter::status(status) }).await?);
    }
    Ok(open)
}

/// The human decisions that a parked run and its child runs wait for.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// The pending approvals. The call id of a child run's approval is prefixed with the child
    /// run's id.
    pub approvals: Vec<PendingApproval>,
    /// The reason why an operator must release a child run, or `None` if no release is needed.
    pub reason: Option<String>,
}

impl Pending {
    /// Returns true if the runs wait for nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.reason.is_none()
    }
}

/// Returns the human decisions that a run and its child runs wait for.
///
/// # Errors
/// If the store cannot be read.
pub async fn pending(store: &TenantStore, run: &str) -> Result<Pending, StoreError> {
    let journal: SharedJournal = Arc::new(store.clone());
    let mut pending =
        Pending { approvals: journal::waiting(&journal, run).await?, ..Pending::default() };
    for child in open_children(store, run).await? {
        let waiting = journal::waiting(&journal, &child.id).await?;
        pending.approvals.extend(waiting.into_iter().map(|waiting| {
            let call = format!("{}{SEPARATOR}{}", child.id, waiting.call);
            PendingApproval { call, question: waiting.question }
        }));
        if let (Status::Parked, None, Some(reason)) = (child.status, &pending.reason, child.reason)
        {
            pending.reason = Some(format!("the child run `{}`: {reason}", child.id));
        }
    }
    Ok(pending)
}

/// Releases a run's child runs that were parked because they repeatedly crashed their process.
/// Returns true if any child run was released.
///
/// # Errors
/// If the store cannot be read or written.
pub async fn release_children(store: &TenantStore, run: &str) -> Result<bool, StoreError> {
    let mut is_any = false;
    for child in open_children(store, run).await? {
        if child.status == Status::Parked && child.reason.is_some() {
            is_any |= store.release(&child.id).await?;
        }
    }
    Ok(is_any)
}

/// Returns a tenant's parked runs that no longer wait for an answer. Their process ended after the
/// answers were recorded but before the runs were resumed.
pub(super) async fn answered(store: &TenantStore) -> Result<Vec<RunRecord>, StoreError> {
    let mut answered = Vec::new();
    for run in store.runs(RunFilter::status(Status::Parked)).await? {
        if run.reason.is_none() && pending(store, &run.id).await?.is_empty() {
            answered.push(run);
        }
    }
    Ok(answered)
}

/// Returns the pending approvals of a run and its child runs for which `answers` contains no
/// answer.
///
/// # Errors
/// If an answer is for an approval that is not pending, or the store cannot be read.
pub(super) async fn unanswered(
    store: &TenantStore,
    run: &str,
    answers: &[(String, Approval)],
) -> Result<Vec<PendingApproval>, AnswerError> {
    let mut open = pending(store, run).await?.approvals;
    let unknown = answers.iter().find(|(call, _)| open.iter().all(|one| one.call != *call));
    if let Some((call, _)) = unknown {
        return Err(AnswerError::NotAskedAbout(call.clone()));
    }
    open.retain(|one| answers.iter().all(|(call, _)| one.call != *call));
    Ok(open)
}

/// Records answers to pending approvals of a run and its child runs. Returns the approvals that are
/// still pending.
pub(super) async fn record(
    store: &TenantStore,
    run: &str,
    answers: &[(String, Approval)],
) -> Result<Vec<PendingApproval>, AnswerError> {
    let journal: SharedJournal = Arc::new(store.clone());
    for (call, approval) in answers {
        let (of, call) = match call.rsplit_once(SEPARATOR) {
            Some((child, call)) => (child, call),
            None => (run, call.as_str()),
        };
        record_answers(&journal, of, &[(call.to_owned(), approval.clone())]).await?;
    }
    Ok(pending(store, run).await?.approvals)
}
