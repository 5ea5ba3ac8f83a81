//! The adapter between programs' host calls and the typed Rust functions that implement them. Those
//! functions never access raw memory.

use std::sync::Arc;

use wasmtime::{AsContext, AsContextMut, WasmBacktrace, WasmTy};

use crate::deadline::Deadline;
use crate::tape::{Arg, Args, CallId, CallResult, Halt, RecordedValue, Replay, Tape, TapeCursor};
use crate::{CallEffect, Code, Failure, Run, Touch};

/// The engine's handle to a call in progress.
pub type Caller<'a> = wasmtime::Caller<'a, Run>;

/// Size of a page of WebAssembly memory, in bytes.
const PAGE: u64 = 65_536;

/// A host function's result that a tape can record: a value or nothing.
pub trait Record {
    /// Returns the form in which a tape records the result.
    fn record(&self, run: &mut Run) -> RecordedValue;
}

impl Record for () {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Unit
    }
}

/// A value that a host function can return to a program.
pub trait Value: Record {
    /// The type that represents the value on the stack: the value's own type, or `i32` for a
    /// pointer or a boolean.
    type Raw: WasmTy + Default;

    /// Stores the value for the program, and returns the stack value that represents it.
    ///
    /// # Errors
    /// `ENOMEM` if the program's memory is full.
    fn store(self, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;

    /// Stores a recorded value for the program, as [`store`](Value::store) does.
    ///
    /// # Errors
    /// The same as for [`store`](Value::store), and [`wrong_recorded_type`] if the recorded value
    /// has a different type.
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;
}

/// Returns the failure for a recorded value whose type differs from the function's result type.
#[must_use]
pub fn wrong_recorded_type() -> Failure {
    Failure::new(Code::EBOUND, "the recording has another type of value than the function returns")
}

macro_rules! plain {
    ($($ty:ty, $recorded:ident;)*) => {$(
        impl Record for $ty {
            fn record(&self, _: &mut Run) -> RecordedValue { RecordedValue::$recorded(*self) }
        }
        impl Value for $ty {
            type Raw = $ty;
            fn store(self, _: &mut Caller<'_>) -> Result<$ty, Failure> { Ok(self) }
            fn restore(recorded: RecordedValue, _: &mut Caller<'_>) -> Result<$ty, Failure> {
                if let RecordedValue::$recorded(value) = recorded {
                    Ok(value)
                } else {
                    Err(wrong_recorded_type())
                }
            }
        }
    )*};
}
plain! { i32, Int; i64, Long; f64, Float; }

impl Record for bool {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Int(i32::from(*self))
    }
}

impl Value for bool {
    type Raw = i32;
    fn store(self, _: &mut Caller<'_>) -> Result<i32, Failure> {
        Ok(i32::from(self))
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        i32::restore(recorded, caller)
    }
}

// Bytes are copied into the program's memory, and the program gets a pointer to them.
macro_rules! in_memory {
    ($($ty:ty),*) => {$(
        impl Record for $ty {
            fn record(&self, _: &mut Run) -> RecordedValue {
                RecordedValue::Bytes(AsRef::<[u8]>::as_ref(&**self).to_vec())
            }
        }
        impl Value for $ty {
            type Raw = i32;
            fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
                let bytes = AsRef::<[u8]>::as_ref(&*self);
                store_bytes(caller, bytes)
            }
            fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
                if let RecordedValue::Bytes(bytes) = recorded {
                    store_bytes(caller, &bytes)
                } else {
                    Err(wrong_recorded_type())
                }
            }
        }
    )*};
}
in_memory!(
    String,
    &'static str,
    Vec<u8>,
    std::borrow::Cow<'static, str>,
    std::sync::Arc<str>,
    std::sync::Arc<[u8]>
);

/// An allocation of the given number of bytes in the program's memory, with arbitrary content. The
/// program gets its address, which is aligned to 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Allocation(pub u32);

impl Record for Allocation {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Long(i64::from(self.0))
    }
}

impl Value for Allocation {
    type Raw = i32;
    fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        reserve(caller, self.0 as usize).map(u32::cast_signed)
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        match recorded {
            RecordedValue::Long(size) => {
                Allocation(u32::try_from(size).map_err(|_| wrong_recorded_type())?).store(caller)
            }
            _ => Err(wrong_recorded_type()),
        }
    }
}

/// The value of a call: either returned by the function just now, or recorded earlier on the tape.
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

/// The reason why a call returns no value: a failure that the program handles, or a halt that ends
/// the program.
#[doc(hidden)]
pub enum CallError {
    Failed(Failure),
    Halted(Halt),
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> CallError {
        CallError::Failed(failure)
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
    /// Begins a call to a function.
    pub fn begin(
        run: &mut Run,
        function: &'static str,
        effect: CallEffect,
        args: impl FnOnce(&mut Args),
    ) -> Result<TapedCall, Halt> {
        // A call made by another host call is part of that call and is not recorded separately.
        let Some(cursor) = run.tape.as_mut().filter(|cursor| !cursor.is_busy()) else {
            return Ok(TapedCall { recording: None, recorded: None, is_performed: true });
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

    /// Flushes the record of the call's beginning, if the tape requires it.
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
        if let Some((tape, id)) = self.recording.as_ref().filter(|_| !is_suspended) {
            tape.end(id, outcome.as_ref().map(|value| value.record(run)).map_err(Failure::clone));
        }
        outcome.map(CallValue::Returned)
    }

    /// Ends the call like [`TapedCall::finish`], and flushes the tape if the call must not be
    /// performed twice.
    pub async fn finish_and_flush<V: Record + Send>(
        self,
        caller: &mut Caller<'_>,
        outcome: Result<V, Failure>,
    ) -> Result<Result<CallValue<V>, Failure>, Halt> {
        let only_once = |id: &CallId| matches!(id.effect, CallEffect::Once | CallEffect::Changes);
        let tape =
            self.recording.as_ref().filter(|(tape, id)| only_once(id) && tape.needs_flush(id));
        let tape = tape.map(|(tape, _)| Arc::clone(tape));
        let value = self.finish(caller.data_mut(), outcome);
        match tape {
            Some(tape) => tape.flush().await.map(|()| value),
            None => Ok(value),
        }
    }
}

/// Adds an argument to a call's identity on the tape.
#[doc(hidden)]
pub fn add(args: &mut Args, arg: &impl Arg) {
    args.add(arg);
}

/// Runs the admission checks for a call.
#[doc(hidden)]
pub fn check(checks: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    checks()
}

/// Asks the run's guard about the resources that every call to a function accesses.
#[doc(hidden)]
#[inline]
pub fn touch(run: &Run, function: &'static str, touches: &[Touch]) -> Result<(), Failure> {
    touches.iter().try_for_each(|touch| run.admit(function, touch.target, touch.text))
}

/// Returns a placeholder for the outcome of a call that is not performed. It is replaced with the
/// recorded result.
#[doc(hidden)]
pub fn not_performed() -> Result<(), Failure> {
    Err(Failure::new(Code::ECANCEL, "the call is not performed"))
}

/// Converts a halt into the error that ends the program.
#[doc(hidden)]
pub fn halted(halt: Halt) -> wasmtime::Error {
    wasmtime::Error::new(halt)
}

/// Separates a halt, which ends the program, from a failure, which the program handles.
#[doc(hidden)]
pub fn split_halt<V>(outcome: Result<V, CallError>) -> wasmtime::Result<Result<V, Failure>> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(CallError::Failed(failure)) => Ok(Err(failure)),
        Err(CallError::Halted(halt)) => Err(halted(halt)),
    }
}

fn store_bytes(caller: &mut Caller<'_>, bytes: &[u8]) -> Result<i32, Failure> {
    let length = u32::try_from(bytes.len()).map_err(|_| out_of_memory(bytes.len()))?;
    let pointer = reserve(caller, bytes.len().saturating_add(4))?;
    let memory = memory(caller)?.data_mut(&mut *caller);
    let at = pointer as usize;
    let (head, body) = (memory.get_mut(at..at + 4), at + 4);
    head.ok_or_else(|| out_of_memory(bytes.len()))?.copy_from_slice(&length.to_le_bytes());
    memory
        .get_mut(body..body + bytes.len())
        .ok_or_else(|| out_of_memory(bytes.len()))?
        .copy_from_slice(bytes);
    Ok(pointer.cast_signed())
}

pub(crate) fn out_of_memory(bytes: usize) -> Failure {
    Failure::new(
        Code::ENOMEM,
        format!("the program's memory has no room for {bytes} more bytes; work on smaller pieces"),
    )
}

pub(crate) fn memory(caller: &Caller<'_>) -> Result<wasmtime::Memory, Failure> {
    caller.data().memory.ok_or_else(|| Failure::new(Code::EBOUND, "the program has no memory yet"))
}

/// Allocates `size` bytes at the end of the heap, and grows the memory if needed. Returns the
/// address of the allocation.
pub(crate) fn reserve(caller: &mut Caller<'_>, size: usize) -> Result<u32, Failure> {
    let memory = memory(caller)?;
    let start = u64::from(caller.data().heap).next_multiple_of(8);
    let end = start
        .checked_add(size as u64)
        .filter(|end| *end <= u64::from(u32::MAX))
        .ok_or_else(|| out_of_memory(size))?;
    let current = memory.data_size(&*caller) as u64;
    if end > current {
        // Doubling keeps the number of growths logarithmic. Near the limit, only the required pages
        // are added.
        let need = (end - current).div_ceil(PAGE);
        let double = need.max(current / PAGE);
        if memory.grow(&mut *caller, double).is_err() {
            let grown = memory.grow(&mut *caller, need);
            grown.map_err(|_| {
                caller.data().memory_limit.refused.clone().unwrap_or_else(|| out_of_memory(size))
            })?;
        }
    }
    let (start, end) = (
        u32::try_from(start).map_err(|_| out_of_memory(size))?,
        u32::try_from(end).map_err(|_| out_of_memory(size))?,
    );
    caller.data_mut().heap = end;
    Ok(start)
}

/// Performs a synchronous call, which borrows its arguments from the program's memory.
#[doc(hidden)]
pub fn call<R, E: From<Failure>>(
    caller: &mut Caller<'_>,
    id: usize,
    f: impl FnOnce(&[u8], &mut Run) -> Result<R, E>,
) -> Result<R, E> {
    let memory = memory(caller)?;
    let (bytes, run) = memory.data_and_store_mut(caller.as_context_mut());
    run.count(id);
    f(bytes, run)
}

/// Reads the arguments of an asynchronous call.
#[doc(hidden)]
pub fn begin<R>(
    caller: &mut Caller<'_>,
    id: usize,
    f: impl FnOnce(&[u8]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    caller.data_mut().count(id);
    f(memory(caller)?.data(caller.as_context()))
}

/// The error that ends a program whose deadline passed while it waited for a host function.
#[derive(Debug, thiserror::Error)]
#[error("the program ran out of time in a host function")]
pub(crate) struct OutOfTime {
    pub(crate) function: usize,
}

/// The time limit of an asynchronous call.
#[doc(hidden)]
pub struct CallTime {
    deadline: Deadline,
    function: usize,
}

impl CallTime {
    /// Returns the time limit of a call, which is the program's deadline.
    #[must_use]
    pub fn of(caller: &Caller<'_>, function: usize) -> CallTime {
        CallTime { deadline: caller.data().deadline.clone(), function }
    }

    /// Performs the call. If its time runs out, returns the error that ends the program.
    ///
    /// # Errors
    /// The errors that the call returns.
    pub async fn limit<T>(
        self,
        call: impl Future<Output = wasmtime::Result<T>>,
    ) -> wasmtime::Result<T> {
        tokio::select! {
            biased;
            done = call => done,
            () = self.deadline.passed() => {
                Err(wasmtime::Error::new(OutOfTime { function: self.function }))
            }
        }
    }
}

#[doc(hidden)]
pub fn unit_or_trap<T>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<T, Failure>,
) -> wasmtime::Result<()> {
    outcome.map(drop).map_err(|failure| trap(caller, id, failure))
}

#[doc(hidden)]
pub fn value_or_trap<V: Value>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<V::Raw> {
    outcome.and_then(|value| value.store(caller)).map_err(|failure| trap(caller, id, failure))
}

#[doc(hidden)]
pub fn unit_and_err<T>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<T, Failure>,
) -> wasmtime::Result<i32> {
    Ok(match outcome {
        Ok(_) => Code::SUCCESS.number(),
        Err(failure) => record_failure(caller, id, failure),
    })
}

#[doc(hidden)]
pub fn value_and_err<V: Value>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<(V::Raw, i32)> {
    Ok(match outcome.and_then(|value| value.store(caller)) {
        Ok(value) => (value, Code::SUCCESS.number()),
        Err(failure) => (V::Raw::default(), record_failure(caller, id, failure)),
    })
}

/// Records the failure of a host function, and returns the error code that the program gets.
fn record_failure(caller: &mut Caller<'_>, id: usize, failure: Failure) -> i32 {
    let (offset, code) = (call_offset(caller), failure.code.number());
    caller.data_mut().fail(id, failure, offset);
    code
}

/// Records the failure of a host function that has no error result. Returns the error that ends the
/// program.
fn trap(caller: &mut Caller<'_>, id: usize, failure: Failure) -> wasmtime::Error {
    let offset = call_offset(caller);
    caller.data_mut().fail(id, failure.clone(), offset);
    wasmtime::Error::new(failure)
}

/// Returns the offset, in the module's binary, of the call in progress, or `None` if the engine
/// does not know it.
fn call_offset(caller: &Caller<'_>) -> Option<usize> {
    WasmBacktrace::capture(caller).frames().first().and_then(|frame| frame.module_offset())
}
