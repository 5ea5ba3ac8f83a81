//! The tape of one program of a run, kept in a journal.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_machine::Execution;
use wattle_rt::CallEffect;
use wattle_rt::tape::{CallId, CallResult, Flush, Halt, PROGRAM, QUESTION, RecordedValue, Replay, Tape};

use super::{Call, SharedJournal};

/// The most calls of one program that are recorded, and the most bytes of what came of them.
const CALLS: usize = 1_000_000;
const BYTES: usize = 256 << 20;
/// How many bytes wait before they are written at the next call that may wait, and how many may wait at all.
const FLUSH: usize = 1 << 20;
const UNWRITTEN: usize = 64 << 20;

/// How many parts of a path stand for one level of programs that start programs.
const LEVEL: usize = 3;

/// Where calls stand: the program's path, and the number of the call within it.
type Place = (Arc<[u32]>, u32);

/// What becomes of calls that nothing was recorded of, and of those that were under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are performed; those under way as far as it does no harm.
    Record {
        /// Whether the run's files are kept in memory, so that nothing of what is under way has happened.
        overlay: bool,
    },
    /// They are differences.
    Replay,
}

/// The tape of one program and of those that it starts.
pub(crate) struct RunTape {
    journal: SharedJournal,
    run: String,
    turn: u32,
    program: u32,
    mode: Mode,
    past: BTreeMap<Place, Call>,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// What is not written yet.
    pending: Vec<Call>,
    /// How much was recorded.
    calls: usize,
    bytes: usize,
    /// About how many bytes of it are not written yet.
    unwritten: usize,
    /// The recorded calls that were made again.
    made: HashSet<Place>,
    halted: Option<Halt>,
    /// The questions that nobody could answer.
    waiting: Vec<String>,
    difference: Option<Difference>,
    /// Whether a recording that breaks off was played to its end.
    over: bool,
}

/// What is not as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of what it is one, such as `call 3 of the program`.
    pub what: String,
    /// What was recorded.
    pub was: String,
    /// What happens now.
    pub is: String,
}

impl RunTape {
    pub(super) fn new(
        journal: SharedJournal,
        run: &str,
        (turn, program): (u32, u32),
        mode: Mode,
        past: impl IntoIterator<Item = Call>,
    ) -> RunTape {
        let past = past.into_iter().filter(|call| call.program == program);
        let past = past.map(|call| ((Arc::clone(&call.mark.path), call.mark.number), call)).collect();
        RunTape { journal, run: run.to_owned(), turn, program, mode, past, now: Mutex::default() }
    }

    /// The questions that the program waits for the answers to.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.lock().waiting.clone()
    }

    /// The first thing that was not as recorded, where a recording is played: also what was recorded and did not happen.
    pub(super) fn difference(&self, recorded: &Execution) -> Option<Difference> {
        let now = self.lock();
        if now.difference.is_some() || now.over || matches!(recorded, Execution::Refused { .. }) {
            return now.difference.clone();
        }
        let unmade = |place: &Place, call: &Call| {
            call.mark.function != QUESTION && !now.made.contains(place) && !self.is_within(&call.mark)
        };
        let (_, call) = self.past.iter().find(|(place, call)| unmade(place, call))?;
        Some(Difference {
            what: place(&call.mark),
            was: shown(&call.mark),
            is: "the program does not make the call".to_owned(),
        })
    }

    /// Whether a call belongs to a program that was started by a call which stands on the tape itself: what came of that one is known, so nothing
    /// below it is run again.
    fn is_within(&self, mark: &CallId) -> bool {
        let levels = (0..mark.path.len()).step_by(LEVEL);
        let mut above = levels.filter_map(|at| Some((Arc::from(mark.path.get(..at)?), *mark.path.get(at)?)));
        above.any(|place| self.past.contains_key(&place))
    }

    /// Whether a recording that breaks off, because the program was stopped then, was played to its end.
    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded of that call; several calls in a row that gave the same stand for one.
    fn recorded(&self, mark: &CallId) -> Option<(&Place, &Call)> {
        let place = (Arc::clone(&mark.path), mark.number);
        let (at, call) = self.past.range(..=place).next_back()?;
        (at.0 == mark.path && mark.number - at.1 < call.times.max(1)).then_some((at, call))
    }

    fn differs(now: &mut Now, difference: Difference) -> Halt {
        let Difference { what, was, is } = &difference;
        let halt = Halt(format!("{what} is not as it was recorded: it was {was}, and is {is}"));
        now.difference.get_or_insert(difference);
        halted(now, halt)
    }
}

/// Halts the program for the first reason that there is.
fn halted(now: &mut Now, halt: Halt) -> Halt {
    now.halted.get_or_insert(halt).clone()
}

impl Tape for RunTape {
    fn begin(&self, mark: &CallId) -> Result<Replay, Halt> {
        let mut now = self.lock();
        if let Some(halt) = &now.halted {
            return Err(halt.clone());
        }
        let Some((at, call)) = self.recorded(mark) else {
            if self.mode == Mode::Replay {
                let nothing = Difference { what: place(mark), was: "no call".to_owned(), is: shown(mark) };
                return Err(RunTape::differs(&mut now, nothing));
            }
            if now.calls >= CALLS || now.bytes >= BYTES || now.unwritten >= UNWRITTEN {
                let words = "the program was stopped: it made more calls than the run's journal can hold; fetch and read less in one program";
                return Err(halted(&mut now, Halt(words.to_owned())));
            }
            if mark.effect != CallEffect::Reads || mark.number < 2 {
                now.pending.push(Call {
                    turn: self.turn,
                    program: self.program,
                    mark: mark.clone(),
                    times: 1,
                    came: None,
                });
            }
            return Ok(Replay::Perform);
        };
        if call.mark.function != mark.function || call.mark.digest != mark.digest {
            let (was, is) = (shown(&call.mark), shown(mark));
            let is = if was == is { format!("{is} with another argument") } else { is };
            return Err(RunTape::differs(&mut now, Difference { what: place(mark), was, is }));
        }
        now.made.insert(at.clone());
        match (&call.came, self.mode) {
            (Some(came), Mode::Record { overlay: true }) if is_of_files(mark.effect) => Ok(Replay::Again(came.clone())),
            (Some(came), _) => Ok(Replay::Recorded(came.clone())),
            (None, Mode::Record { overlay }) => match mark.effect {
                CallEffect::None | CallEffect::Reads | CallEffect::Repeatable | CallEffect::Writes => {
                    Ok(Replay::Perform)
                }
                CallEffect::Changes if overlay => Ok(Replay::Perform),
                CallEffect::Once | CallEffect::Changes => {
                    let words = format!(
                        "outcome unknown: {} was under way when the process stopped; check what became of it before you do it again",
                        shown(mark)
                    );
                    Err(halted(&mut now, Halt(words)))
                }
            },
            (None, Mode::Replay) if mark.function == PROGRAM => Ok(Replay::Perform),
            (None, Mode::Replay) => {
                now.over = true;
                Err(halted(&mut now, Halt("the recording of the program ends here".to_owned())))
            }
        }
    }

    fn end(&self, mark: &CallId, came: CallResult) {
        if self.mode == Mode::Replay {
            return;
        }
        let mut now = self.lock();
        let size = came.as_ref().map_or_else(|failure| failure.reason.len(), RecordedValue::size) + mark.args.len();
        now.calls += 1;
        now.bytes += size;
        now.unwritten += size;
        let same = |call: &&mut Call| call.mark.path == mark.path && call.mark.number == mark.number;
        if let Some(call) = now.pending.iter_mut().rev().find(same) {
            call.came = Some(came);
            return;
        }
        if let Some(last) = now.pending.last_mut()
            && last.mark.path == mark.path
            && last.mark.number + last.times == mark.number
            && last.mark.function == mark.function
            && last.mark.digest == mark.digest
            && last.came.as_ref() == Some(&came)
            && mark.effect == CallEffect::Reads
        {
            last.times += 1;
            now.calls -= 1;
            return;
        }
        now.pending.push(Call {
            turn: self.turn,
            program: self.program,
            mark: mark.clone(),
            times: 1,
            came: Some(came),
        });
    }

    fn needs_flush(&self, mark: &CallId) -> bool {
        let in_memory = self.mode == Mode::Record { overlay: true } && is_of_files(mark.effect);
        (mark.effect != CallEffect::Reads && !in_memory) || self.lock().unwritten > FLUSH
    }

    fn key(&self, path: &[u32], number: u32) -> String {
        let path: Vec<String> = path.iter().map(u32::to_string).collect();
        format!("{}/{}.{}/{}/{number}", self.run, self.turn, self.program, path.join("."))
    }

    fn flush(&self) -> Flush<'_> {
        Box::pin(async move {
            let pending = {
                let mut now = self.lock();
                now.unwritten = 0;
                std::mem::take(&mut now.pending)
            };
            if pending.is_empty() {
                return Ok(());
            }
            let written = self.journal.calls(&self.run, pending).await;
            written.map_err(|error| halted(&mut self.lock(), Halt(format!("the program was stopped: {error}"))))
        })
    }

    fn suspend(&self, mark: &CallId) -> Halt {
        let mut now = self.lock();
        now.waiting.push(mark.args.clone());
        halted(&mut now, Halt("the run waits for the answer of a person".to_owned()))
    }

    fn halted(&self) -> Option<Halt> {
        self.lock().halted.clone()
    }
}

fn is_of_files(effect: CallEffect) -> bool {
    matches!(effect, CallEffect::Writes | CallEffect::Changes)
}

/// A call as a person reads it.
pub(super) fn shown(mark: &CallId) -> String {
    match &*mark.function {
        PROGRAM => "the program's text or arguments".to_owned(),
        function => format!("{function}({})", mark.args),
    }
}

/// Where a call stands, as a person reads it.
fn place(mark: &CallId) -> String {
    let program = match &*mark.path {
        [] => "the program".to_owned(),
        path => {
            let path: Vec<String> = path.iter().map(u32::to_string).collect();
            format!("the program {} that it started", path.join("."))
        }
    };
    match mark.number {
        0 => program,
        number => format!("call {} of {program}", number.saturating_sub(1)),
    }
}
