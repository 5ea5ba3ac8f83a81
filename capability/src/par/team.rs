//! Concurrent execution of the programs in one call.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::RwLock;
use tokio::task::{AbortHandle, JoinSet};
use wattle_rt::{Account, Code, Failure, Grants, MemoryCharge, NestedContext, Outcome, Run};

use super::{Call, Par, result_of};

/// The running programs of one call. Dropping the team stops all of them.
pub(crate) struct Team {
    par: Arc<Par>,
    grants: Arc<Grants>,
    context: NestedContext,
    /// A lock that an exclusive program holds for writing, and every other program for reading.
    exclusion: Arc<RwLock<()>>,
    /// Number of bytes that the remaining programs may still output.
    room: usize,
    account: Account,
    /// The charge for the memory of the output so far.
    held: MemoryCharge,
    /// Maximum memory of one program, in bytes.
    program_memory: usize,
    running: JoinSet<(usize, Result<Outcome, Failure>)>,
    handles: BTreeMap<usize, AbortHandle>,
}

impl Team {
    /// Creates an empty team with the run's grants, at the next nesting level.
    ///
    /// # Errors
    /// If the run is nested too deeply.
    pub(crate) fn new(par: Arc<Par>, run: &mut Run) -> Result<Team, Failure> {
        Ok(Team {
            par,
            grants: Arc::clone(run.grants()),
            context: run.nested()?,
            exclusion: Arc::default(),
            room: run.remaining_memory(),
            account: run.account().clone(),
            held: run.account().nothing(),
            program_memory: run.memory_limit(),
            running: JoinSet::new(),
            handles: BTreeMap::new(),
        })
    }

    /// Returns true if another program may start: the maximum number of concurrent programs is not
    /// reached, and either no program is running or the run's account has enough memory for another
    /// one.
    pub(crate) fn has_capacity(&self) -> bool {
        let fits = self.running.is_empty() || self.account.free() >= self.program_memory;
        fits && self.running.len() < self.par.max_concurrent.get()
    }

    /// Starts the program of a call. `at` is the index of the call.
    pub(crate) fn start(&mut self, at: usize, call: Result<Call, Failure>) {
        let (par, grants, exclusion, context) = (
            Arc::clone(&self.par),
            Arc::clone(&self.grants),
            Arc::clone(&self.exclusion),
            self.context.item(at),
        );
        let handle = self
            .running
            .spawn(async move { (at, run_one(&par, call, grants, context, &exclusion).await) });
        self.handles.insert(at, handle);
    }

    /// Waits for the next program to end and adds its calls to the run's trace. Returns the index
    /// of the call and the program's results, or `None` if no program is running.
    ///
    /// # Errors
    /// `ENOMEM` if the total size of the outputs exceeds the run's memory limit.
    pub(crate) async fn next(
        &mut self,
        run: &mut Run,
    ) -> Result<Option<(usize, Result<Vec<Vec<u8>>, Failure>)>, Failure> {
        let (at, outcome) = loop {
            match self.running.join_next().await {
                None => return Ok(None),
                Some(Ok(joined)) => break joined,
                // A program that this team stopped has no result.
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
            Failure::new(
                Code::ENOMEM,
                "the outputs of the programs exceed the run's memory limit; run fewer",
            )
        })?;
        self.held.grow(bytes)?;
        Ok(Some((at, result)))
    }

    /// Stops the programs of all calls with an index above `at`.
    pub(crate) fn stop_after(&mut self, at: usize) {
        self.handles.range(at + 1..).for_each(|(_, handle)| handle.abort());
    }
}

async fn run_one(
    par: &Par,
    call: Result<Call, Failure>,
    grants: Arc<Grants>,
    context: NestedContext,
    exclusion: &RwLock<()>,
) -> Result<Outcome, Failure> {
    let Call { work, args } = call?;
    let exclusive = par.programs.is_exclusive(&work);
    let _exclusive = if exclusive { Some(exclusion.write().await) } else { None };
    let _shared = if exclusive { None } else { Some(exclusion.read().await) };
    par.programs.run(work, args, grants, context).await
}
