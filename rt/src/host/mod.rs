//! The adapter between programs' host calls and the typed Rust functions that implement them. Those
//! functions never access raw memory.

mod heap;
mod taped;
mod value;

use wasmtime::{AsContext, AsContextMut, WasmBacktrace};

use crate::deadline::SharedDeadline;
use crate::kind::Params;
use crate::{CallEffect, Code, Failure, Run, Touch};

pub(crate) use heap::{PAGE, memory, out_of_memory, reserve};
use taped::not_performed;
pub use taped::{CallValue, TapedCall};
pub use value::{Allocation, Record, Value, wrong_recorded_type};

/// The engine's handle to a call in progress.
pub type Caller<'a> = wasmtime::Caller<'a, Box<Run>>;

/// What a call to a row's function needs to know about the row.
#[doc(hidden)]
pub struct Row {
    pub module: &'static str,
    pub name: &'static str,
    /// The full name, such as `kv.get`.
    pub function: &'static str,
    pub effect: CallEffect,
    /// The resources that every call accesses.
    pub touches: &'static [Touch],
}

impl Row {
    /// Returns true if calls have an effect, which the run's tape records.
    fn is_taped(&self) -> bool {
        !matches!(self.effect, CallEffect::None)
    }

    /// Asks the run's guard about everything that a call accesses.
    fn admit<P: Params>(&self, run: &Run, args: &P::Borrowed<'_>) -> Result<(), Failure> {
        P::admit(run, self.function, args)?;
        touch(run, self.function, self.touches)
    }
}

/// Asks the run's guard about the resources that every call to a function accesses.
#[doc(hidden)]
#[inline]
pub fn touch(run: &Run, function: &'static str, touches: &[Touch]) -> Result<(), Failure> {
    touches.iter().try_for_each(|touch| run.admit(function, touch.target, touch.text))
}

/// Performs a synchronous call without an effect, which borrows its arguments from the program's
/// memory.
#[doc(hidden)]
pub fn call<V>(
    caller: &mut Caller<'_>,
    function: &'static str,
    perform: impl FnOnce(&[u8], &mut Run) -> Result<V, Failure>,
) -> Result<V, Failure> {
    let memory = memory(caller)?;
    let (bytes, run) = memory.data_and_store_mut(caller.as_context_mut());
    run.count(function);
    perform(bytes, run)
}

/// Performs a synchronous call with an effect, which the run's tape records or replays.
///
/// # Errors
/// If the tape ends the program.
#[doc(hidden)]
pub fn taped_call<P: Params, V: Record>(
    caller: &mut Caller<'_>,
    row: &Row,
    raw: P::Raw,
    function: impl FnOnce(&mut Run, P::Borrowed<'_>) -> Result<V, Failure>,
) -> wasmtime::Result<Result<CallValue<V>, Failure>> {
    let mut halted = None;
    let outcome = call(caller, row.function, |bytes, run| {
        let args = P::read(bytes, raw, row.function)?;
        let call = TapedCall::begin(run, row.function, row.effect, |all| P::feed(&args, all));
        let call = match call {
            Ok(call) => call,
            Err(halt) => {
                halted = Some(halt);
                return Err(not_performed());
            }
        };
        let admitted =
            if call.is_performed() { row.admit::<P>(run, &args) } else { Err(not_performed()) };
        let outcome = admitted.and_then(|()| function(run, args));
        call.finish(run, outcome)
    });
    halted.map_or(Ok(outcome), |halt| Err(wasmtime::Error::new(halt)))
}

/// Starts an asynchronous call, which owns its arguments. Returns the call and its arguments, or
/// the failure that is the call's outcome.
///
/// # Errors
/// If the tape ends the program.
#[doc(hidden)]
pub async fn start<P: Params>(
    caller: &mut Caller<'_>,
    row: &Row,
    raw: P::Raw,
) -> wasmtime::Result<(TapedCall, Result<P::Owned, Failure>)> {
    caller.data_mut().count(row.function);
    let read = memory(caller).and_then(|memory| {
        P::read(memory.data(caller.as_context()), raw, row.function).map(P::own)
    });
    let (run, args) = match read {
        Ok(args) => (caller.data_mut(), args),
        Err(failure) => return Ok((TapedCall::untaped(), Err(failure))),
    };
    let mut call = TapedCall::untaped();
    if row.is_taped() {
        call = TapedCall::begin(run, row.function, row.effect, |all| P::feed(&P::lend(&args), all))
            .map_err(wasmtime::Error::new)?;
        if !call.is_performed() {
            return Ok((call, Err(not_performed())));
        }
        call.flush().await.map_err(wasmtime::Error::new)?;
    }
    let admitted = row.admit::<P>(caller.data(), &P::lend(&args));
    Ok((call, admitted.map(|()| args)))
}

/// The error that ends a program whose deadline passed while it waited for a host function.
#[derive(Debug, thiserror::Error)]
#[error("the program ran out of time in a host function")]
pub(crate) struct OutOfTime {
    pub(crate) function: &'static str,
}

/// The time limit of an asynchronous call.
#[doc(hidden)]
pub struct CallTime {
    deadline: SharedDeadline,
    function: &'static str,
}

impl CallTime {
    /// Returns the time limit of a call, which is the program's deadline.
    #[must_use]
    pub fn of(caller: &Caller<'_>, function: &'static str) -> CallTime {
        CallTime { deadline: caller.data().deadline.shared().clone(), function }
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
    function: &'static str,
    outcome: Result<T, Failure>,
) -> wasmtime::Result<()> {
    outcome.map(drop).map_err(|failure| trap(caller, function, failure))
}

#[doc(hidden)]
pub fn value_or_trap<V: Value>(
    caller: &mut Caller<'_>,
    function: &'static str,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<V::Raw> {
    outcome.and_then(|value| value.store(caller)).map_err(|failure| trap(caller, function, failure))
}

#[doc(hidden)]
pub fn unit_and_err<T>(
    caller: &mut Caller<'_>,
    function: &'static str,
    outcome: Result<T, Failure>,
) -> wasmtime::Result<i32> {
    Ok(match outcome {
        Ok(_) => Code::SUCCESS.number(),
        Err(failure) => record_failure(caller, function, failure),
    })
}

#[doc(hidden)]
pub fn value_and_err<V: Value>(
    caller: &mut Caller<'_>,
    function: &'static str,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<(V::Raw, i32)> {
    Ok(match outcome.and_then(|value| value.store(caller)) {
        Ok(value) => (value, Code::SUCCESS.number()),
        Err(failure) => (V::Raw::default(), record_failure(caller, function, failure)),
    })
}

/// Records the failure of a host function and returns the error code that the program gets.
fn record_failure(caller: &mut Caller<'_>, function: &'static str, failure: Failure) -> i32 {
    let offset = call_offset(caller);
    let code = failure.code.number();
    caller.data_mut().fail(function, failure.truncated(), offset);
    code
}

/// Records the failure of a host function that has no error result. Returns the error that ends the
/// program.
fn trap(caller: &mut Caller<'_>, function: &'static str, failure: Failure) -> wasmtime::Error {
    let offset = call_offset(caller);
    let failure = failure.truncated();
    caller.data_mut().fail(function, failure.clone(), offset);
    wasmtime::Error::new(failure)
}

/// Returns the offset of the call in progress in the module's binary, or `None` if the engine does
/// not know the offset.
fn call_offset(caller: &Caller<'_>) -> Option<usize> {
    WasmBacktrace::capture(caller).frames().first().and_then(|frame| frame.module_offset())
}
