//! Recording of a run's turns while the run is driven.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wattle_capability::files::Files;
use wattle_machine::{Effect, Envelope, Input, KeptValue, Usage};
use wattle_store::StoreError;
use wattle_store::journal::EffectRecorder;

use super::tape::{Mode, RunTape, kept_json};
use super::{RecordedCall, SharedJournal, Turn};
use crate::tree::RunTree;

/// A recorder of one run's turns.
pub(crate) struct TurnRecorder {
    pub(crate) run: String,
    journal: SharedJournal,
    files: Option<Arc<Files>>,
    /// The tree that the run belongs to. All runs of the tree share their files.
    tree: RunTree,
    effects: Mutex<EffectRecorder>,
    /// The calls made by programs that have ended. They are recorded with the next turn.
    calls: Mutex<Vec<RecordedCall>>,
    /// Number of recorded turns.
    turns: AtomicU32,
    /// The point where the run was resumed.
    resumed: Option<ResumePoint>,
    /// The first failure to record a turn.
    failure: Mutex<Option<StoreError>>,
}

/// The point where a run was stopped.
pub(crate) struct ResumePoint {
    /// The pending effects, which may already have been performed in part.
    pub(crate) effects: Vec<Effect>,
    /// The sequence number of the first event that the pending effects emit.
    pub(crate) seq: u64,
    /// The sequence number of the latest event in the journal.
    pub(crate) recorded: u64,
    /// Duration of the run so far.
    pub(crate) elapsed: Duration,
    /// The reason why the run must end, because its engine did not do what was recorded.
    pub(crate) broken: Option<String>,
    /// The recorded calls that kept the values of the run.
    pub(crate) kept: Vec<RecordedCall>,
    /// The recorded calls of the programs that the pending effects started.
    calls: Vec<RecordedCall>,
    /// The number of the turn that the pending effects belong to.
    turn: u32,
}

/// What the loop of a stopped run returned for the recorded inputs.
pub(crate) struct Played {
    /// The effects of the last turn.
    pub(crate) effects: Vec<Effect>,
    /// The reason why the run must end, because its engine did not do what was recorded.
    pub(crate) broken: Option<String>,
    /// The recorder of the effects of all turns.
    pub(crate) recorder: EffectRecorder,
    /// The values that programs kept.
    pub(crate) kept: Vec<KeptValue>,
}

impl TurnRecorder {
    /// Creates the recorder of a new run.
    pub(crate) fn new(
        journal: SharedJournal,
        run: String,
        files: Option<Arc<Files>>,
        tree: &RunTree,
    ) -> TurnRecorder {
        // The first turn of a root run contains the files with which the run begins.
        if let Some(files) = files.as_ref().filter(|_| tree.is_top()) {
            files.mark_all_changed();
        }
        let tree = tree.clone();
        TurnRecorder {
            run,
            journal,
            files,
            tree,
            effects: Mutex::default(),
            calls: Mutex::default(),
            turns: AtomicU32::new(0),
            resumed: None,
            failure: Mutex::default(),
        }
    }

    /// Creates the recorder of a stopped run from its turns. The root run of the tree is resumed
    /// first, and rebuilds the file overlay from the recorded changes of all runs in the tree. If
    /// `has_session_files` is true, `files` already contain what the run began with.
    pub(crate) async fn resume(
        journal: SharedJournal,
        run: String,
        (turns, played): (&[Turn], Played),
        (files, has_session_files): (Option<Arc<Files>>, bool),
        tree: &RunTree,
    ) -> Result<TurnRecorder, StoreError> {
        let Played { effects, broken, recorder, kept } = played;
        let last = turns.last();
        let mut point = ResumePoint {
            effects,
            broken,
            seq: last.map_or(1, |last| last.seq),
            recorded: 0,
            elapsed: Duration::from_millis(last.map_or(0, |last| last.elapsed_ms)),
            kept: Vec::new(),
            calls: Vec::new(),
            turn: u32::try_from(turns.len().saturating_sub(1)).unwrap_or(u32::MAX),
        };
        // The turns that started the programs that kept a value, by its name.
        let mut keeping: BTreeMap<&str, u32> = BTreeMap::new();
        for (at, turn) in (0_u32..).zip(turns) {
            if let Input::Executed(executions) = &turn.input {
                let kept = executions.iter().flat_map(|execution| execution.kept());
                keeping.extend(kept.map(|value| (value.name.as_str(), at.saturating_sub(1))));
            }
        }
        if let Some(files) = files.as_ref().filter(|_| tree.is_top()) {
            let recorded = journal.files_of_tree(&run).await?;
            for (_, changed) in recorded.iter().filter(|(turn, _)| *turn > 0 || !has_session_files)
            {
                files.restore(changed).map_err(StoreError::unreadable)?;
            }
        }
        if turns.is_empty() {
            // The run was stopped before its first turn.
            return Ok(TurnRecorder::new(journal, run, files, tree));
        }
        let keeping: BTreeSet<u32> =
            kept.iter().filter_map(|value| keeping.get(value.name.as_str()).copied()).collect();
        for turn in keeping {
            let calls = journal.calls_of(&run, turn).await?;
            point.kept.extend(calls.into_iter().filter(|call| kept_json(call).is_some()));
        }
        point.calls = journal.calls_of(&run, point.turn).await?;
        // The events of the last turn, and those that were emitted when the run was parked.
        let last = journal.events(&run, point.seq.saturating_sub(1), u32::MAX).await?;
        point.recorded = last.last().map_or(0, |event| event.seq);
        let turns = AtomicU32::new(u32::try_from(turns.len()).unwrap_or(u32::MAX));
        Ok(TurnRecorder {
            run,
            journal,
            files,
            tree: tree.clone(),
            effects: Mutex::new(recorder),
            calls: Mutex::default(),
            turns,
            resumed: Some(point),
            failure: Mutex::default(),
        })
    }

    /// Returns the id of the tree's root run.
    pub(crate) fn root(&self) -> &str {
        self.tree.root(&self.run)
    }

    /// Returns the point where the run was resumed, or `None` for a new run.
    pub(crate) fn resumed(&self) -> Option<&ResumePoint> {
        self.resumed.as_ref()
    }

    /// Returns and clears the first failure to record a turn. After a failure, the run must not be
    /// ended: its record stops before the failed turn, and it can be resumed from there.
    pub(crate) fn take_failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Buffers the calls of an ended program that are not yet in the journal, so that the next turn
    /// records them. Calls that must not be repeated are already in the journal.
    pub(crate) fn end_tape(&self, tape: &RunTape) {
        let calls = tape.take_pending();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).extend(calls);
    }

    fn take_calls(&self) -> Vec<RecordedCall> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the buffered calls of ended programs now, without a turn.
    pub(crate) async fn record_calls(&self) -> Result<(), StoreError> {
        match self.take_calls() {
            calls if calls.is_empty() => Ok(()),
            calls => self.journal.calls(&self.run, calls).await,
        }
    }

    /// Records a turn and its events before the turn's effects are performed. `seq` is the number
    /// of the turn's first event.
    pub(crate) async fn record(
        &self,
        (spent, input): (Usage, &Input),
        effects: &[Effect],
        events: &[Envelope],
        (seq, elapsed): (u64, Duration),
    ) -> Result<(), StoreError> {
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner).record(effects);
        // The runs of a tree share their files, so their turns are recorded in the order of the
        // changes.
        let _turn = self.tree.record().await;
        let files = self.files.as_ref().and_then(|files| files.take_delta());
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let turn = Turn { spent, input: input.clone(), effects, seq, elapsed_ms, files };
        let calls = self.take_calls();
        if let Err(error) = self.journal.turn(&self.run, turn, calls, events.to_vec()).await {
            // The next turn that is recorded in the tree must contain the changes of this turn.
            self.files.iter().for_each(|files| files.mark_all_changed());
            let reported = StoreError::new("write")(error.to_string().into());
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
            return Err(reported);
        }
        self.turns.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the tape of a program that the last turn started. `program` is the program's index
    /// in that turn.
    pub(crate) fn tape(&self, program: usize) -> Arc<RunTape> {
        let turn = self.turns.load(Ordering::Relaxed).saturating_sub(1);
        let program = u32::try_from(program).unwrap_or(u32::MAX);
        let resumed = self
            .resumed
            .iter()
            .filter(|resumed| resumed.turn == turn)
            .flat_map(|resumed| resumed.calls.iter().cloned());
        let overlay = self.files.as_ref().is_none_or(|files| files.is_overlay());
        let journal = Arc::clone(&self.journal);
        Arc::new(RunTape::new(
            journal,
            &self.run,
            (turn, program),
            Mode::Record { overlay },
            resumed,
        ))
    }
}
