//! A run that is written down while it is driven.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wattle_capability::files::Files;
use wattle_machine::{Effect, Input, Setup, State, Usage};

use super::tape::{Mode, RunTape};
use super::turn::Shortener;
use super::{Call, SharedJournal, Turn};
use crate::StoreError;

/// Writes the turns of one run down.
pub(crate) struct Track {
    pub(crate) run: String,
    journal: SharedJournal,
    files: Option<Arc<Files>>,
    shortener: Mutex<Shortener>,
    /// How many turns there are.
    turns: AtomicU32,
    /// Where the run was when it was taken up.
    past: Option<Past>,
}

/// Where a run was when its process was stopped.
pub(crate) struct Past {
    pub(crate) state: State,
    /// What was to be done next, and may have been done in part.
    pub(crate) effects: Vec<Effect>,
    /// The number of the first event of that.
    pub(crate) seq: u64,
    /// How long the run had taken.
    pub(crate) elapsed: Duration,
    /// What the programs of that had called.
    calls: Vec<Call>,
    /// The turn whose effects these are.
    turn: u32,
}

impl Track {
    /// Of a run that begins.
    pub(crate) fn new(journal: SharedJournal, run: String, files: Option<Arc<Files>>) -> Track {
        if let Some(files) = &files {
            files.mark_all_changed();
        }
        Track { run, journal, files, shortener: Mutex::default(), turns: AtomicU32::new(0), past: None }
    }

    /// Of a run that was stopped: its state is made again of its turns, and its overlay of what it had changed.
    pub(crate) async fn taken_up(
        journal: SharedJournal,
        run: String,
        setup: Setup,
        files: Option<Arc<Files>>,
    ) -> Result<Track, StoreError> {
        let turns = journal.turns(&run).await?;
        let mut shortener = Shortener::default();
        let mut past = Past {
            state: State::new(setup),
            effects: Vec::new(),
            seq: 1,
            elapsed: Duration::ZERO,
            calls: Vec::new(),
            turn: 0,
        };
        for (at, turn) in (0..).zip(&turns) {
            let Turn { seq, elapsed_ms, files: changed, .. } = turn;
            (past.state, past.effects) = turn.step(past.state);
            shortener.shorten(&past.effects);
            (past.seq, past.elapsed, past.turn) = (*seq, Duration::from_millis(*elapsed_ms), at);
            if let (Some(files), Some(changed)) = (&files, changed) {
                files.restore(changed).map_err(StoreError::unreadable)?;
            }
        }
        if turns.is_empty() {
            // It was stopped before it had begun.
            return Ok(Track::new(journal, run, files));
        }
        past.calls = journal.calls_of(&run, past.turn).await?;
        let turns = AtomicU32::new(u32::try_from(turns.len()).unwrap_or(u32::MAX));
        Ok(Track { run, journal, files, shortener: Mutex::new(shortener), turns, past: Some(past) })
    }

    /// Where the run was when it was taken up; nothing for one that begins.
    pub(crate) fn past(&self) -> Option<&Past> {
        self.past.as_ref()
    }

    /// Writes a turn down, before anything is done about it.
    pub(crate) async fn note(
        &self,
        (spent, input): (Usage, &Input),
        effects: &[Effect],
        seq: u64,
        elapsed: Duration,
    ) -> Result<(), StoreError> {
        let done = self.shortener.lock().unwrap_or_else(PoisonError::into_inner).shorten(effects);
        let files = self.files.as_ref().and_then(|files| files.take_delta());
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.journal.turn(&self.run, Turn { spent, input: input.clone(), done, seq, elapsed_ms, files }).await?;
        self.turns.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The tape of one of the programs that the last turn wants run.
    pub(crate) fn tape(&self, program: usize) -> Arc<RunTape> {
        let turn = self.turns.load(Ordering::Relaxed).saturating_sub(1);
        let program = u32::try_from(program).unwrap_or(u32::MAX);
        let past = self.past.iter().filter(|past| past.turn == turn).flat_map(|past| past.calls.iter().cloned());
        let overlay = self.files.as_ref().is_none_or(|files| files.is_overlay());
        let journal = Arc::clone(&self.journal);
        Arc::new(RunTape::new(journal, &self.run, (turn, program), Mode::Record { overlay }, past))
    }
}
