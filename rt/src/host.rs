//! The one adapter between wire calls and typed Rust functions: no function body touches raw memory.

use std::sync::Arc;

use wasmtime::{AsContext, AsContextMut, WasmBacktrace, WasmTy};

use crate::tape::{Arg, Args, CallId, CallResult, Halt, RecordedValue, Replay, Tape};
use crate::{CallEffect, Code, Failure, Run, Touch};

/// The engine's view of a call in progress.
pub type Caller<'a> = wasmtime::Caller<'a, Run>;

/// The size of a page of WebAssembly memory.
const PAGE: u64 = 65_536;

/// What a host function can give: a value, or nothing.
pub trait Record {
    /// What a tape keeps of it.
    fn record(&self, run: &mut Run) -> RecordedValue;
}

impl Record for () {
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Unit
    }
}

/// A value that a host function can give to a program.
pub trait Value: Record {
    /// What stands on the stack for it: the value itself, or a pointer.
    type Raw: WasmTy + Default;

    /// Puts the value where the program can read it.
    ///
    /// # Errors
    /// `ENOMEM` where the program's memory is full.
    fn store(self, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;

    /// Puts what a tape recorded of such a value where the program can read it.
    ///
    /// # Errors
    /// As [`store`](Value::store), and [`wrong_recorded_type`] where it was recorded of another type.
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<Self::Raw, Failure>;
}

/// A recording holds something else than the function gives.
#[must_use]
pub fn wrong_recorded_type() -> Failure {
    Failure::new(Code::EBOUND, "the recording holds another type of value than the function gives")
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
                if let RecordedValue::$recorded(value) = recorded { Ok(value) } else { Err(wrong_recorded_type()) }
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

/// Bytes go into the program's memory in wire format; the program gets the pointer.
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
                if let RecordedValue::Bytes(bytes) = recorded { store_bytes(caller, &bytes) } else { Err(wrong_recorded_type()) }
            }
        }
    )*};
}
in_memory!(String, &'static str, Vec<u8>, std::borrow::Cow<'static, str>, std::sync::Arc<str>, std::sync::Arc<[u8]>);

/// Room in the program's memory, uninitialised or zero; the program gets its address, aligned to 8.
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

/// What came of a call that stands on a tape: made now, or recorded from before.
#[doc(hidden)]
pub enum Given<V> {
    Made(V),
    RecordedValue(RecordedValue),
}

impl<V: Record> Record for Given<V> {
    fn record(&self, run: &mut Run) -> RecordedValue {
        match self {
            Given::Made(value) => value.record(run),
            Given::RecordedValue(recorded) => recorded.clone(),
        }
    }
}

impl<V: Value> Value for Given<V> {
    type Raw = V::Raw;
    fn store(self, caller: &mut Caller<'_>) -> Result<V::Raw, Failure> {
        match self {
            Given::Made(value) => value.store(caller),
            Given::RecordedValue(recorded) => V::restore(recorded, caller),
        }
    }
    fn restore(recorded: RecordedValue, caller: &mut Caller<'_>) -> Result<V::Raw, Failure> {
        V::restore(recorded, caller)
    }
}

/// Why a call gives no value: the program is told, or must not go on.
#[doc(hidden)]
pub enum Stop {
    Told(Failure),
    Halt(Halt),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Told(failure)
    }
}

/// A call with an effect, begun on the tape of its run where there is one.
#[doc(hidden)]
pub struct Start {
    mark: Option<(Arc<dyn Tape>, CallId)>,
    came: Option<CallResult>,
    perform: bool,
}

impl Start {
    /// Begins the call of that function.
    pub fn new(
        run: &mut Run,
        function: &'static str,
        effect: CallEffect,
        args: impl FnOnce(&mut Args),
    ) -> Result<Start, Halt> {
        // What a call does on its way belongs to it, and does not stand on the tape by itself.
        let Some(reel) = run.reel.as_mut().filter(|reel| !reel.is_busy()) else {
            return Ok(Start { mark: None, came: None, perform: true });
        };
        let mut all = Args::default();
        args(&mut all);
        let mark = reel.next(function, effect, all);
        let tape = Arc::clone(&reel.tape);
        Ok(match tape.begin(&mark)? {
            Replay::Perform => Start { mark: Some((tape, mark)), came: None, perform: true },
            Replay::Recorded(came) => Start { mark: None, came: Some(came), perform: false },
            Replay::Again(came) => Start { mark: None, came: Some(came), perform: true },
        })
    }

    /// Whether the call is performed.
    pub fn performs(&self) -> bool {
        self.perform
    }

    /// Makes the beginning safe, where that matters.
    pub async fn keep(&self) -> Result<(), Halt> {
        match &self.mark {
            Some((tape, mark)) if tape.needs_flush(mark) => tape.flush().await,
            _ => Ok(()),
        }
    }

    /// Notes what came of it.
    pub fn done<V: Record>(self, run: &mut Run, outcome: Result<V, Failure>) -> Result<Given<V>, Failure> {
        if let Some(reel) = run.reel.as_mut().filter(|_| self.mark.is_some() || self.came.is_some()) {
            reel.over();
        }
        if let Some(came) = self.came {
            return came.map(Given::RecordedValue);
        }
        if let Some((tape, mark)) = &self.mark {
            tape.end(mark, outcome.as_ref().map(|value| value.record(run)).map_err(Failure::clone));
        }
        outcome.map(Given::Made)
    }

    /// Notes what came of it, and makes that safe where the call must not be performed twice.
    pub async fn ended<V: Record + Send>(
        self,
        caller: &mut Caller<'_>,
        outcome: Result<V, Failure>,
    ) -> Result<Result<Given<V>, Failure>, Halt> {
        let twice = |mark: &CallId| !matches!(mark.effect, CallEffect::Once | CallEffect::Changes);
        let tape = self.mark.as_ref().filter(|(tape, mark)| !twice(mark) && tape.needs_flush(mark));
        let tape = tape.map(|(tape, _)| Arc::clone(tape));
        let given = self.done(caller.data_mut(), outcome);
        match tape {
            Some(tape) => tape.flush().await.map(|()| given),
            None => Ok(given),
        }
    }
}

/// Adds an argument of a call to its mark.
#[doc(hidden)]
pub fn add(args: &mut Args, arg: &impl Arg) {
    args.add(arg);
}

/// Asks the run's guard about what a call touches.
#[doc(hidden)]
pub fn admitted(ask: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    ask()
}

/// Asks the run's guard about what every call of a function touches.
#[doc(hidden)]
#[inline]
pub fn touch(run: &Run, function: &'static str, touches: &[Touch]) -> Result<(), Failure> {
    touches.iter().try_for_each(|touch| run.admit(function, touch.target, touch.text))
}

/// Stands for the outcome of a call that is not performed, since what came of it is known; nobody is told it.
#[doc(hidden)]
pub fn unmade() -> Result<(), Failure> {
    Err(Failure::new(Code::ECANCEL, "the call is not performed"))
}

/// Ends the program, which must not go on.
#[doc(hidden)]
pub fn halted(halt: Halt) -> wasmtime::Error {
    wasmtime::Error::new(halt)
}

/// Takes the two ways in which a call gives no value apart.
#[doc(hidden)]
pub fn split<V>(outcome: Result<V, Stop>) -> wasmtime::Result<Result<V, Failure>> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Told(failure)) => Ok(Err(failure)),
        Err(Stop::Halt(halt)) => Err(halted(halt)),
    }
}

fn store_bytes(caller: &mut Caller<'_>, bytes: &[u8]) -> Result<i32, Failure> {
    let length = u32::try_from(bytes.len()).map_err(|_| full(bytes.len()))?;
    let pointer = reserve(caller, bytes.len().saturating_add(4))?;
    let memory = memory(caller)?.data_mut(&mut *caller);
    let at = pointer as usize;
    let (head, body) = (memory.get_mut(at..at + 4), at + 4);
    head.ok_or_else(|| full(bytes.len()))?.copy_from_slice(&length.to_le_bytes());
    memory.get_mut(body..body + bytes.len()).ok_or_else(|| full(bytes.len()))?.copy_from_slice(bytes);
    Ok(pointer.cast_signed())
}

fn full(bytes: usize) -> Failure {
    Failure::new(
        Code::ENOMEM,
        format!("the program's memory has no room for {bytes} more bytes; work on smaller pieces"),
    )
}

fn memory(caller: &Caller<'_>) -> Result<wasmtime::Memory, Failure> {
    caller.data().memory.ok_or_else(|| Failure::new(Code::EBOUND, "the program has no memory yet"))
}

/// Bumps the heap by `size` bytes, growing the memory where needed.
fn reserve(caller: &mut Caller<'_>, size: usize) -> Result<u32, Failure> {
    let memory = memory(caller)?;
    let start = u64::from(caller.data().heap).next_multiple_of(8);
    let end = start.checked_add(size as u64).filter(|end| *end <= u64::from(u32::MAX)).ok_or_else(|| full(size))?;
    let have = memory.data_size(&*caller) as u64;
    if end > have {
        // Doubling keeps the number of growths logarithmic; the exact need is the fallback near the limit.
        let need = (end - have).div_ceil(PAGE);
        let double = need.max(have / PAGE);
        if memory.grow(&mut *caller, double).is_err() {
            let grown = memory.grow(&mut *caller, need);
            grown.map_err(|_| caller.data().memory_limit.refused.clone().unwrap_or_else(|| full(size)))?;
        }
    }
    let (start, end) = (u32::try_from(start).map_err(|_| full(size))?, u32::try_from(end).map_err(|_| full(size))?);
    caller.data_mut().heap = end;
    Ok(start)
}

/// Performs a synchronous call with the program's memory borrowed for its arguments.
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

/// Reads the arguments of an asynchronous call and marks it as under way.
#[doc(hidden)]
pub fn begin<R>(caller: &mut Caller<'_>, id: usize, f: impl FnOnce(&[u8]) -> Result<R, Failure>) -> Result<R, Failure> {
    let offset = place(caller);
    let run = caller.data_mut();
    run.count(id);
    run.waiting = Some((id, offset));
    f(memory(caller)?.data(caller.as_context()))
}

/// Marks the asynchronous call as done.
#[doc(hidden)]
pub fn end(caller: &mut Caller<'_>) {
    caller.data_mut().waiting = None;
}

#[doc(hidden)]
pub fn unit_or_trap<T>(caller: &mut Caller<'_>, id: usize, outcome: Result<T, Failure>) -> wasmtime::Result<()> {
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
pub fn unit_and_err<T>(caller: &mut Caller<'_>, id: usize, outcome: Result<T, Failure>) -> wasmtime::Result<i32> {
    Ok(match outcome {
        Ok(_) => Code::SUCCESS.number(),
        Err(failure) => tell(caller, id, failure),
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
        Err(failure) => (V::Raw::default(), tell(caller, id, failure)),
    })
}

/// Remembers why a call failed; the program gets the code.
fn tell(caller: &mut Caller<'_>, id: usize, failure: Failure) -> i32 {
    let (offset, code) = (place(caller), failure.code.number());
    caller.data_mut().fail(id, failure, offset);
    code
}

/// Ends the program: its function has no error result to tell the failure with.
fn trap(caller: &mut Caller<'_>, id: usize, failure: Failure) -> wasmtime::Error {
    let offset = place(caller);
    caller.data_mut().fail(id, failure.clone(), offset);
    wasmtime::Error::new(failure)
}

/// Where in the module the call was made, in bytes from its beginning.
fn place(caller: &Caller<'_>) -> Option<usize> {
    WasmBacktrace::capture(caller).frames().first().and_then(|frame| frame.module_offset())
}
