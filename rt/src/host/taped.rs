//! Calls with an effect, which the run's tape records or replays.

use std::sync::Arc;

use super::{Caller, Record, Value};
use crate::tape::{Args, CallId, CallResult, Halt, RecordedValue, Replay, Tape, TapeCursor};
use crate::{CallEffect, Code, Failure, Run};

/// The value of a call, either just returned by the function or recorded earlier on the tape.
#[doc(hidden)]
pub enum CallValue<V> {
    Returned(V),
    Recorded(RecordedValue),
}

impl<V: Record> Record for CallValue<V> {
    fn record(&self, run: &mut Run) -> RecordedValue {
        match self {
            CallValue::Returned(value) => value.record(run),
            CallValue::Recorded(recorded) => recorded.clone(),
        }
    }
}

impl<V: Value> Value for CallValue<V> {
    type Raw = V::Raw;
    fn store(self, caller: &mut Caller<'_>) -> Result<V::Raw, Failure> {
        match self {
            CallValue::Returned(value) => value.store(caller),
            CallValue::Recorded(recorded) => V::restore(recorded, caller),
        }
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<V::Raw, Failure> {
        V::restore(recorded, caller)
    }
}

/// A call with an effect. If the run has a tape, the tape records or replays the call.
#[doc(hidden)]
pub struct TapedCall {
    /// The tape that will record the result.
    recording: Option<(Arc<dyn Tape>, CallId)>,
    /// The result that the tape recorded earlier.
    recorded: Option<CallResult>,
    is_performed: bool,
}

impl TapedCall {
    /// Returns a call that no tape records or replays.
    pub(super) fn untaped() -> TapedCall {
        TapedCall { recording: None, recorded: None, is_performed: true }
    }

    /// Begins a call to a function.
    pub fn begin(
        run: &mut Run,
        function: &'static str,
        effect: CallEffect,
        args: impl FnOnce(&mut Args),
    ) -> Result<TapedCall, Halt> {
        // A call made by another host call is part of that call and is not recorded separately.
        let Some(cursor) = run.tape.as_mut().filter(|cursor| !cursor.is_busy()) else {
            return Ok(TapedCall::untaped());
        };
        let mut all = Args::default();
        args(&mut all);
        let id = cursor.start_call(function, effect, all);
        let tape = Arc::clone(&cursor.tape);
        Ok(match tape.begin(&id)? {
            Replay::Perform => {
                TapedCall { recording: Some((tape, id)), recorded: None, is_performed: true }
            }
            Replay::Recorded(result) => {
                TapedCall { recording: None, recorded: Some(result), is_performed: false }
            }
            Replay::Again(result) => {
                TapedCall { recording: None, recorded: Some(result), is_performed: true }
            }
        })
    }

    /// Returns true if the call must be performed.
    pub fn is_performed(&self) -> bool {
        self.is_performed
    }

    /// Flushes the tape before the call is performed, if the tape requires it.
    pub async fn flush(&self) -> Result<(), Halt> {
        match &self.recording {
            Some((tape, id)) if tape.needs_flush(id) => tape.flush().await,
            _ => Ok(()),
        }
    }

    /// Ends the call. Returns the result that the tape recorded earlier, if there is one. Otherwise
    /// records `outcome` and returns it.
    pub fn finish<V: Record>(
        self,
        run: &mut Run,
        outcome: Result<V, Failure>,
    ) -> Result<CallValue<V>, Failure> {
        let is_of_tape = self.recording.is_some() || self.recorded.is_some();
        let cursor = run.tape.as_mut().filter(|_| is_of_tape);
        let is_suspended = cursor.is_some_and(TapeCursor::end_call);
        if let Some(result) = self.recorded {
            return result.map(CallValue::Recorded);
        }
        let outcome = outcome.map_err(Failure::truncated);
        if let Some((tape, id)) = self.recording.as_ref().filter(|_| !is_suspended) {
            tape.end(id, outcome.as_ref().map(|value| value.record(run)).map_err(Failure::clone));
        }
        outcome.map(CallValue::Returned)
    }

    /// Ends the call like [`TapedCall::finish`] and flushes the tape if the call must not be
    /// performed twice.
    ///
    /// # Errors
    /// If the tape ends the program.
    pub async fn finish_and_flush<V: Record + Send>(
        self,
        caller: &mut Caller<'_>,
        outcome: Result<V, Failure>,
    ) -> wasmtime::Result<Result<CallValue<V>, Failure>> {
        let only_once = |id: &CallId| matches!(id.effect, CallEffect::Once | CallEffect::Changes);
        let tape =
            self.recording.as_ref().filter(|(tape, id)| only_once(id) && tape.needs_flush(id));
        let tape = tape.map(|(tape, _)| Arc::clone(tape));
        let value = self.finish(caller.data_mut(), outcome);
        match tape {
            Some(tape) => tape.flush().await.map(|()| value).map_err(wasmtime::Error::new),
            None => Ok(value),
        }
    }
}

/// Returns a placeholder for the outcome of a call that is not performed. The recorded result
/// replaces the placeholder.
pub(super) fn not_performed() -> Failure {
    Failure::new(Code::ECANCEL, "the call is not performed")
}
