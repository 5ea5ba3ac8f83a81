//! Programs that run at the same time on behalf of one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::RwLock;
use tokio::task::{AbortHandle, JoinSet};
use wattle_rt::{Account, Code, Failure, Grants, Held, Nested, Outcome, Run};

use super::{Call, Par, result_of};

/// The programs that one call has under way. All of them end when it is dropped.
pub(crate) struct Team {
    par: Arc<Par>,
    grants: Arc<Grants>,
    place: Nested,
    /// Held as a whole by a program that runs with no other one beside it.
    alone: Arc<RwLock<()>>,
    /// How many more bytes may be put out.
    room: usize,
    account: Account,
    /// What was put out so far.
    held: Held,
    /// Maximum memory of one program, in bytes.
    program_memory: usize,
    under_way: JoinSet<(usize, Result<Outcome, Failure>)>,
    handles: BTreeMap<usize, AbortHandle>,
}

impl Team {
    /// Nobody yet, with what the run was granted, one level below it.
    ///
    /// # Errors
    /// Where the run has no programs to start, or is nested too deep to start any.
    pub(crate) fn new(run: &mut Run) -> Result<Team, Failure> {
        Ok(Team {
            par: run.config::<Par>()?,
            grants: Arc::clone(run.grants()),
            place: run.nested()?,
            alone: Arc::default(),
            room: run.remaining_memory(),
            account: run.account().clone(),
            held: run.account().nothing(),
            program_memory: run.memory_limit(),
            under_way: JoinSet::new(),
            handles: BTreeMap::new(),
        })
    }

    /// Whether one more may run at once: the account of the run has room for as much memory as a program may have, or none is under way.
    pub(crate) fn has_place(&self) -> bool {
        let fits = self.under_way.is_empty() || self.account.free() >= self.program_memory;
        fits && self.under_way.len() < self.par.at_once.get()
    }

    /// Starts a program under a number of its own.
    pub(crate) fn start(&mut self, at: usize, call: Call) {
        let (par, grants, alone, place) =
            (Arc::clone(&self.par), Arc::clone(&self.grants), Arc::clone(&self.alone), self.place.item(at));
        let handle = self.under_way.spawn(async move { (at, one(&par, call, grants, place, &alone).await) });
        self.handles.insert(at, handle);
    }

    /// Waits for the next one to be done, takes its calls into the run's trace, and gives its number and what it put out; `None` where
    /// none is under way.
    ///
    /// # Errors
    /// `ENOMEM` where all of them put out more than the run may hold.
    pub(crate) async fn next(
        &mut self,
        run: &mut Run,
    ) -> Result<Option<(usize, Result<Vec<Vec<u8>>, Failure>)>, Failure> {
        let (at, outcome) = loop {
            match self.under_way.join_next().await {
                None => return Ok(None),
                Some(Ok(joined)) => break joined,
                // One that was ended here gives nothing.
                Some(Err(error)) => {
                    if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        };
        self.handles.remove(&at);
        if let Ok(outcome) = &outcome {
            run.absorb(outcome);
        }
        let result = outcome.and_then(result_of);
        let size = |results: &Vec<Vec<u8>>| results.iter().map(|result| result.len() + 1).sum();
        let bytes = result.as_ref().map_or_else(|failure| failure.reason.len(), size);
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            Failure::new(Code::ENOMEM, "what the programs put out takes more than the run's memory limit; run fewer")
        })?;
        self.held.grow(bytes)?;
        Ok(Some((at, result)))
    }

    /// Ends those with greater numbers.
    pub(crate) fn end_behind(&mut self, at: usize) {
        self.handles.range(at + 1..).for_each(|(_, handle)| handle.abort());
    }
}

async fn one(
    par: &Par,
    call: Call,
    grants: Arc<Grants>,
    place: Nested,
    alone: &RwLock<()>,
) -> Result<Outcome, Failure> {
    let (work, args) = call?;
    let exclusive = par.programs.is_exclusive(&work);
    let _alone = if exclusive { Some(alone.write().await) } else { None };
    let _beside = if exclusive { None } else { Some(alone.read().await) };
    par.programs.run(work, args, grants, place).await
}
