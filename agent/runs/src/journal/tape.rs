//! The tape of a program: its recorded calls, which a journal stores.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wattle_machine::Execution;
use wattle_rt::tape::{
    CallId, CallResult, Flush, Halt, PROGRAM, QUESTION, RecordedValue, Replay, Tape,
};
use wattle_rt::{CallEffect, KEEP};
use wattle_store::now_ms;

use super::{CallTime, RecordedCall, SharedJournal};

/// Maximum number of recorded calls per program.
const MAX_CALLS: usize = 1_000_000;
/// Maximum total size of a program's recorded arguments and results, in bytes.
const MAX_BYTES: usize = 256 << 20;
/// Buffer size, in bytes, above which the next asynchronous call flushes the buffer to the journal.
const FLUSH_BYTES: usize = 1 << 20;
/// Maximum size of the buffer, in bytes.
const MAX_BUFFERED: usize = 64 << 20;

/// The function name that marks a program whose call or outcome was changed by middleware.
pub(crate) const CHANGED: &str = "middleware";

/// The function names that mark special records of a tape, which are not calls to host functions.
pub(crate) const HOST_NAMES: &[&str] = &[PROGRAM, QUESTION, CHANGED];

/// Returns true if middleware changed the call that ran this program, or the outcome of that call.
pub(crate) fn is_changed<'a>(
    calls: impl IntoIterator<Item = &'a RecordedCall>,
    program: u32,
) -> bool {
    calls.into_iter().any(|call| call.program == program && call.id.function == CHANGED)
}

/// Number of path components per nesting level.
const PATH_PARTS: usize = 3;

/// The position of a call: the path of its program, and the number of the call within the program.
type CallKey = (Arc<[u32]>, u32);

/// The mode of a tape, which determines how it handles unrecorded and pending calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Calls are performed. Pending calls are repeated if that is safe.
    Record {
        /// If true, the run's files are an overlay in memory. A pending change to these files was
        /// lost when the process stopped, so it is safe to repeat the change.
        overlay: bool,
    },
    /// Calls return their recorded results. An unrecorded call is a difference.
    Replay,
}

/// The tape of one program and its nested programs.
pub(crate) struct RunTape {
    journal: SharedJournal,
    run: String,
    turn: u32,
    program: u32,
    mode: Mode,
    past: BTreeMap<CallKey, RecordedCall>,
    state: Mutex<TapeState>,
    /// Locked while calls are written to the journal. Programs that run at the same time share the
    /// tape, and one of them may be writing the calls of the others.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct TapeState {
    /// The calls that have not been written to the journal yet.
    pending: Vec<RecordedCall>,
    /// Number of recorded calls.
    calls: usize,
    /// Total size of the recorded arguments and results, in bytes.
    bytes: usize,
    /// Approximate size of `pending`, in bytes.
    buffered: usize,
    /// The calls that are being performed.
    performed: HashMap<CallKey, Start>,
    /// The recorded calls that the program has made again.
    repeated: HashSet<CallKey>,
    halted: Option<Halt>,
    /// The reason why calls could not be written to the journal.
    unwritten: Option<Halt>,
    /// The questions that a person must answer before the program can continue.
    waiting: Vec<String>,
    difference: Option<Difference>,
    /// If true, the replay reached the point where the recording ends.
    is_exhausted: bool,
}

/// The start of a call that is being performed.
#[derive(Clone, Copy)]
struct Start {
    /// Start time, in milliseconds since 1970.
    began: u64,
    /// Start time on a monotonic clock.
    at: Instant,
}

impl TapeState {
    /// Records that a call is about to be performed. Returns the call's start time, without a
    /// duration.
    fn start(&mut self, id: &CallId) -> CallTime {
        let start = Start { began: now_ms(), at: Instant::now() };
        self.performed.insert((Arc::clone(&id.path), id.number), start);
        CallTime { began: start.began, dur_ms: None }
    }

    /// Removes a call from `performed` and returns its time. Returns `None` if `performed` does not
    /// contain the call.
    fn finish(&mut self, id: &CallId) -> Option<CallTime> {
        let start = self.performed.remove(&(Arc::clone(&id.path), id.number))?;
        let dur_ms = u64::try_from(start.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(CallTime { began: start.began, dur_ms: Some(dur_ms) })
    }
}

/// A difference between a replay and the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// A description of the value that differs, such as `call 3 of the program`.
    pub what: String,
    /// The recorded value.
    pub was: String,
    /// The value in the replay.
    pub is: String,
}

impl RunTape {
    pub(crate) fn new(
        journal: SharedJournal,
        run: &str,
        (turn, program): (u32, u32),
        mode: Mode,
        past: impl IntoIterator<Item = RecordedCall>,
    ) -> RunTape {
        let past = past.into_iter().filter(|call| call.program == program);
        let past = past.map(|call| ((Arc::clone(&call.id.path), call.id.number), call)).collect();
        RunTape {
            journal,
            run: run.to_owned(),
            turn,
            program,
            mode,
            past,
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Records that middleware changed the call that ran this program, or the outcome of that call.
    /// A replay runs no middleware, so it skips the program and uses the recorded outcome.
    pub(crate) fn mark_changed(&self) {
        let id = CallId {
            path: Arc::from([]),
            number: u32::MAX,
            function: CHANGED.into(),
            digest: [0; 16],
            args: String::new(),
            effect: CallEffect::None,
        };
        let call = RecordedCall {
            turn: self.turn,
            program: self.program,
            id,
            times: 1,
            result: Some(Ok(RecordedValue::Unit)),
            time: None,
        };
        if !is_changed(self.past.values(), self.program) {
            self.lock().pending.push(call);
        }
    }

    /// Removes and returns the calls that have not been written to the journal yet.
    pub(crate) fn take_pending(&self) -> Vec<RecordedCall> {
        let mut state = self.lock();
        state.buffered = 0;
        std::mem::take(&mut state.pending)
    }

    /// Returns the program's pending questions.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.lock().waiting.clone()
    }

    /// Returns the first difference between the replay and the record, or `None` if there is none.
    /// A recorded call that the program did not make is a difference, too.
    pub(crate) fn difference(&self, recorded: &Execution) -> Option<Difference> {
        let state = self.lock();
        if state.difference.is_some()
            || state.is_exhausted
            || matches!(recorded, Execution::Refused { .. })
        {
            return state.difference.clone();
        }
        let is_missing = |key: &CallKey, call: &RecordedCall| {
            call.id.function != QUESTION
                && !state.repeated.contains(key)
                && !self.is_within(&call.id)
        };
        let (_, call) = self.past.iter().find(|(key, call)| is_missing(key, call))?;
        Some(Difference {
            what: describe_position(&call.id),
            was: describe(&call.id),
            is: "the program does not make the call".to_owned(),
        })
    }

    /// Returns true if a nested program made the call, and the tape contains the call that started
    /// that program or one of its ancestors. The replay uses the recorded result of that starting
    /// call and does not run the nested program again.
    fn is_within(&self, id: &CallId) -> bool {
        let levels = (0..id.path.len()).step_by(PATH_PARTS);
        let mut above =
            levels.filter_map(|at| Some((Arc::from(id.path.get(..at)?), *id.path.get(at)?)));
        above.any(|key| self.past.contains_key(&key))
    }

    /// Returns true if the program was stopped during the recording and the replay reached that
    /// point.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.lock().is_exhausted
    }

    /// Returns true if a crash of the machine must not lose the record. Otherwise a call that must
    /// not be repeated could be repeated, or a person could be asked again.
    fn must_survive(&self, call: &RecordedCall) -> bool {
        match call.id.effect {
            CallEffect::Once => true,
            CallEffect::Changes => self.mode != Mode::Record { overlay: true },
            CallEffect::None | CallEffect::Reads | CallEffect::Repeatable | CallEffect::Writes => {
                call.id.function == QUESTION && call.result.is_some()
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TapeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record of a call, or `None` if the call is not recorded. One record can cover
    /// several consecutive calls with the same result.
    fn recorded(&self, id: &CallId) -> Option<(&CallKey, &RecordedCall)> {
        let key = (Arc::clone(&id.path), id.number);
        let (at, call) = self.past.range(..=key).next_back()?;
        (at.0 == id.path && id.number - at.1 < call.times.max(1)).then_some((at, call))
    }

    fn differs(state: &mut TapeState, difference: Difference) -> Halt {
        let Difference { what, was, is } = &difference;
        let halt = Halt(format!("{what} is not as it was recorded: it was {was}, and is {is}"));
        state.difference.get_or_insert(difference);
        halt_with(state, halt)
    }
}

/// The calls that a flush is writing to the journal. If the flush is dropped first, for example
/// because its program timed out, the calls are pending again, so that another flush writes them.
struct Unwritten<'a> {
    tape: &'a RunTape,
    calls: Vec<RecordedCall>,
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        self.tape.lock().pending.splice(..0, self.calls.drain(..));
    }
}

/// Halts the program, unless it is already halted. Returns the first halt.
fn halt_with(state: &mut TapeState, halt: Halt) -> Halt {
    state.halted.get_or_insert(halt).clone()
}

impl Tape for RunTape {
    fn begin(&self, id: &CallId) -> Result<Replay, Halt> {
        let mut state = self.lock();
        if let Some(halt) = &state.halted {
            return Err(halt.clone());
        }
        let Some((at, call)) = self.recorded(id) else {
            if self.mode == Mode::Replay {
                let unrecorded = Difference {
                    what: describe_position(id),
                    was: "no call".to_owned(),
                    is: describe(id),
                };
                return Err(RunTape::differs(&mut state, unrecorded));
            }
            if state.calls >= MAX_CALLS
                || state.bytes >= MAX_BYTES
                || state.buffered >= MAX_BUFFERED
            {
                let reason = "the program was stopped: it made more calls than the run's journal \
                              can hold; fetch and read less in one program";
                return Err(halt_with(&mut state, Halt(reason.to_owned())));
            }
            let time = Some(state.start(id));
            if id.effect != CallEffect::Reads || id.number < 2 {
                state.pending.push(RecordedCall {
                    turn: self.turn,
                    program: self.program,
                    id: id.clone(),
                    times: 1,
                    result: None,
                    time,
                });
            }
            return Ok(Replay::Perform);
        };
        if call.id.function != id.function || call.id.digest != id.digest {
            let (was, is) = (describe(&call.id), describe(id));
            let is = if was == is { format!("{is} with another argument") } else { is };
            return Err(RunTape::differs(
                &mut state,
                Difference { what: describe_position(id), was, is },
            ));
        }
        state.repeated.insert(at.clone());
        match (&call.result, self.mode) {
            (Some(result), Mode::Record { overlay: true }) if is_of_files(id.effect) => {
                Ok(Replay::Again(result.clone()))
            }
            (Some(result), _) => Ok(Replay::Recorded(result.clone())),
            (None, Mode::Record { overlay }) => match id.effect {
                CallEffect::None
                | CallEffect::Reads
                | CallEffect::Repeatable
                | CallEffect::Writes => {
                    state.start(id);
                    Ok(Replay::Perform)
                }
                CallEffect::Changes if overlay => {
                    state.start(id);
                    Ok(Replay::Perform)
                }
                CallEffect::Once | CallEffect::Changes => {
                    let reason = format!(
                        "outcome unknown: {} was under way when the process stopped; check its \
                         effect before you do it again",
                        describe(id)
                    );
                    Err(halt_with(&mut state, Halt(reason)))
                }
            },
            (None, Mode::Replay) if id.function == PROGRAM => Ok(Replay::Perform),
            (None, Mode::Replay) => {
                state.is_exhausted = true;
                Err(halt_with(
                    &mut state,
                    Halt("the recording of the program ends here".to_owned()),
                ))
            }
        }
    }

    fn end(&self, id: &CallId, result: CallResult) {
        if self.mode == Mode::Replay {
            return;
        }
        let mut state = self.lock();
        let size = result.as_ref().map_or_else(|failure| failure.reason.len(), RecordedValue::size)
            + id.args.len();
        state.calls += 1;
        state.bytes += size;
        state.buffered += size;
        let same =
            |call: &&mut RecordedCall| call.id.path == id.path && call.id.number == id.number;
        let time = state.finish(id);
        if let Some(call) = state.pending.iter_mut().rev().find(same) {
            call.result = Some(result);
            call.time = time;
            return;
        }
        if let Some(last) = state.pending.last_mut()
            && last.id.path == id.path
            && last.id.number + last.times == id.number
            && last.id.function == id.function
            && last.id.digest == id.digest
            && last.result.as_ref() == Some(&result)
            && id.effect == CallEffect::Reads
        {
            last.times += 1;
            last.time = joined(last.time, time);
            state.calls -= 1;
            return;
        }
        state.pending.push(RecordedCall {
            turn: self.turn,
            program: self.program,
            id: id.clone(),
            times: 1,
            result: Some(result),
            time,
        });
    }

    fn needs_flush(&self, id: &CallId) -> bool {
        let in_memory = self.mode == Mode::Record { overlay: true } && is_of_files(id.effect);
        (id.effect != CallEffect::Reads && !in_memory) || self.lock().buffered > FLUSH_BYTES
    }

    fn key(&self, path: &[u32], number: u32) -> String {
        call_key(&self.run, (self.turn, self.program), (path, number))
    }

    fn flush(&self) -> Flush<'_> {
        Box::pin(async move {
            let _writing = self.writing.lock().await;
            if let Some(halt) = &self.lock().unwritten {
                return Err(halt.clone());
            }
            let calls = self.take_pending();
            if calls.is_empty() {
                return Ok(());
            }
            let mut unwritten = Unwritten { tape: self, calls: calls.clone() };
            let written = if calls.iter().any(|call| self.must_survive(call)) {
                self.journal.durable_calls(&self.run, calls).await
            } else {
                self.journal.calls(&self.run, calls).await
            };
            unwritten.calls.clear();
            written.map_err(|error| {
                let mut state = self.lock();
                let halt = Halt(format!("the program was stopped: {error}"));
                state.unwritten = Some(halt.clone());
                halt_with(&mut state, halt)
            })
        })
    }

    fn suspend(&self, id: &CallId) -> Halt {
        let mut state = self.lock();
        state.waiting.push(id.args.clone());
        halt_with(&mut state, Halt("the run waits for the answer of a person".to_owned()))
    }

    fn halted(&self) -> Option<Halt> {
        self.lock().halted.clone()
    }
}

/// Returns the JSON text of the value that a recorded call kept, or `None` for any other call.
pub(crate) fn kept_json(call: &RecordedCall) -> Option<&str> {
    match &call.result {
        Some(Ok(RecordedValue::Bytes(json))) if call.id.function == KEEP => {
            std::str::from_utf8(json).ok()
        }
        _ => None,
    }
}

/// Returns the key of a call of a run. `place` is the turn that started the program, and the index
/// of the program in that turn.
fn call_key(run: &str, place: (u32, u32), (path, number): (&[u32], u32)) -> String {
    let path: Vec<String> = path.iter().map(u32::to_string).collect();
    format!("{run}/{}.{}/{}/{number}", place.0, place.1, path.join("."))
}

/// Returns the key of the first change that a recorded call of a run makes.
pub(crate) fn first_change_key(run: &str, call: &RecordedCall) -> String {
    let RecordedCall { turn, program, id, .. } = call;
    format!("{}.1", call_key(run, (*turn, *program), (&id.path, id.number)))
}

/// Returns the time from the start of a call to the end of a later call.
fn joined(first: Option<CallTime>, last: Option<CallTime>) -> Option<CallTime> {
    let (first, last) = (first?, last?);
    // The wall clock may have been set back between them.
    let dur_ms = last.dur_ms?.saturating_add(last.began.saturating_sub(first.began));
    Some(CallTime { began: first.began, dur_ms: Some(dur_ms) })
}

fn is_of_files(effect: CallEffect) -> bool {
    matches!(effect, CallEffect::Writes | CallEffect::Changes)
}

/// Describes a call in human-readable form.
pub(crate) fn describe(id: &CallId) -> String {
    match &*id.function {
        PROGRAM => "the program's text or arguments".to_owned(),
        function => format!("{function}({})", id.args),
    }
}

/// Describes the position of a call in human-readable form.
fn describe_position(id: &CallId) -> String {
    let program = match &*id.path {
        [] => "the program".to_owned(),
        path => {
            let path: Vec<String> = path.iter().map(u32::to_string).collect();
            format!("the program {} that it started", path.join("."))
        }
    };
    match id.number {
        0 => program,
        number => format!("call {} of {program}", number.saturating_sub(1)),
    }
}
