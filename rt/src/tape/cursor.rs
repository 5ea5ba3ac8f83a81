//! The position of a program on its tape.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{Args, CallId, Halt, PROGRAM, QUESTION, RecordedValue, Replay, Tape};
use crate::{CallEffect, Code, Exit, Failure, Outcome, Position, Trap, TrapKind};

/// The number of a program's first call.
const FIRST_CALL: u32 = 2;

/// The position of a program on a tape: its path and the number of its next call.
#[derive(Clone)]
pub(crate) struct TapeCursor {
    pub(crate) tape: Arc<dyn Tape>,
    path: Arc<[u32]>,
    next: u32,
    /// The recorded call in progress, if there is one.
    current: Option<CurrentCall>,
}

/// A recorded call in progress.
#[derive(Clone, Copy)]
struct CurrentCall {
    number: u32,
    /// Number of times that the call has started programs.
    starts: u32,
    /// Number of change keys that have been created for the call.
    keys: u32,
    /// If true, the call is waiting for a person's answer. It is made again when the run is
    /// resumed.
    is_suspended: bool,
}

impl fmt::Debug for TapeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapeCursor")
            .field("path", &self.path)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl TapeCursor {
    /// Returns the cursor of the program that the run itself calls.
    pub(crate) fn root(tape: Arc<dyn Tape>) -> TapeCursor {
        TapeCursor { tape, path: Arc::from([]), next: FIRST_CALL, current: None }
    }

    /// Returns the cursor for programs that the call in progress starts. A call may start programs
    /// several times, with a different cursor each time. If the call is not recorded, each cursor
    /// uses up a call number of its own.
    pub(crate) fn nested(&mut self) -> TapeCursor {
        let (number, starts) = match &mut self.current {
            Some(call) => {
                call.starts += 1;
                (call.number, call.starts - 1)
            }
            None => (self.take_number(), 0),
        };
        self.child(number).child(starts)
    }

    /// Returns the cursor whose path is this cursor's path followed by `number`.
    pub(crate) fn child(&self, number: u32) -> TapeCursor {
        let path = self.path.iter().copied().chain([number]).collect();
        TapeCursor { tape: Arc::clone(&self.tape), path, next: FIRST_CALL, current: None }
    }

    /// Returns a new key for a change that the call in progress makes. Returns `None` if the call
    /// is not recorded.
    pub(crate) fn key(&mut self) -> Option<String> {
        let call = self.current.as_mut()?;
        call.keys += 1;
        Some(format!("{}.{}", self.tape.key(&self.path, call.number), call.keys))
    }

    /// Records that the program is waiting for a person's answer to a question that a call asks.
    /// Returns the halt that stops the program.
    pub(crate) fn suspend(&mut self, question: &str) -> Halt {
        if let Some(call) = &mut self.current {
            call.is_suspended = true;
        }
        self.tape.suspend(&self.question(question))
    }

    /// Returns true if a recorded call is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Starts the next recorded call and returns its identity.
    pub(crate) fn start_call(
        &mut self,
        function: &'static str,
        effect: CallEffect,
        args: Args,
    ) -> CallId {
        let number = self.take_number();
        self.current = Some(CurrentCall { number, starts: 0, keys: 0, is_suspended: false });
        self.id(number, function, effect, args)
    }

    /// Ends the recorded call in progress. Returns true if the call is waiting for a person's
    /// answer and therefore has no result.
    pub(crate) fn end_call(&mut self) -> bool {
        self.current.take().is_some_and(|call| call.is_suspended)
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    fn id(&self, number: u32, function: &'static str, effect: CallEffect, args: Args) -> CallId {
        let (digest, args) = args.finish();
        CallId {
            path: Arc::clone(&self.path),
            number,
            function: Cow::Borrowed(function),
            effect,
            digest,
            args,
        }
    }

    /// Returns the identity of a question about the program. The question is not truncated.
    pub(crate) fn question(&self, question: &str) -> CallId {
        let mut args = Args::default();
        args.add(&question);
        CallId { args: question.to_owned(), ..self.id(1, QUESTION, CallEffect::Reads, args) }
    }

    /// Records that the program begins. `kept` is the hash of the kept values, if the program reads
    /// them. If the tape already records that the program timed out or
    /// was denied, also returns that [`PriorEnd`]. The caller must then use it instead of running
    /// the program again, because a second run could end differently.
    pub(crate) fn open(
        &self,
        source: &str,
        args: &[String],
        kept: Option<&str>,
    ) -> Result<(CallId, Option<PriorEnd>), Halt> {
        let mut all = Args::default();
        all.add(&source);
        args.iter().for_each(|arg| all.add(&arg.as_str()));
        kept.iter().for_each(|hash| all.add(hash));
        let id = self.id(0, PROGRAM, CallEffect::Reads, all);
        let prior = match self.tape.begin(&id)? {
            Replay::Recorded(Ok(RecordedValue::Items(parts))) => {
                TimedOut::decode(parts).map(PriorEnd::TimedOut)
            }
            Replay::Recorded(Err(refusal)) => Some(PriorEnd::Refused(refusal.reason)),
            _ => None,
        };
        Ok((id, prior))
    }

    /// Records that the guard denied the program.
    pub(crate) fn refuse(&self, id: &CallId, why: &str) {
        self.tape.end(id, Err(Failure::new(Code::EACCESS, why)));
    }

    /// Records the outcome of the program.
    pub(crate) fn close(&self, id: &CallId, outcome: &Outcome) {
        let value = match &outcome.exit {
            Exit::Trapped(trap) if trap.kind == TrapKind::Time => {
                TimedOut::encode(trap, &outcome.results)
            }
            _ => RecordedValue::Unit,
        };
        self.tape.end(id, Ok(value));
    }
}

/// The way in which a program ended in an earlier run. The program is not run again.
#[derive(Debug)]
pub(crate) enum PriorEnd {
    TimedOut(TimedOut),
    Refused(String),
}

/// The trap and the results of a program that timed out in an earlier run.
#[derive(Debug)]
pub(crate) struct TimedOut {
    pub(crate) trap: Trap,
    pub(crate) results: Vec<Vec<u8>>,
}

impl TimedOut {
    /// Encodes the trap's message, its position as `LINE COLUMN`, and the results.
    fn encode(trap: &Trap, results: &[Vec<u8>]) -> RecordedValue {
        let position = trap.position.map_or(String::new(), |p| format!("{} {}", p.line, p.column));
        let head = [trap.message.clone().into_bytes(), position.into_bytes()];
        RecordedValue::Items(head.into_iter().chain(results.iter().cloned()).collect())
    }

    fn decode(parts: Vec<Vec<u8>>) -> Option<TimedOut> {
        let mut parts = parts.into_iter();
        let mut text = || parts.next().and_then(|bytes| String::from_utf8(bytes).ok());
        let message = text()?;
        let position = text()?;
        let position = position.split_once(' ').and_then(|(line, column)| {
            Some(Position { line: line.parse().ok()?, column: column.parse().ok()? })
        });
        Some(TimedOut {
            trap: Trap { kind: TrapKind::Time, message, position },
            results: parts.collect(),
        })
    }
}
