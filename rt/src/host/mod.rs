//! The adapter between programs' host calls and the typed Rust functions that implement them. Those
//! functions never access raw memory.

mod heap;
mod taped;
mod value;

use wasmtime::{AsContext, AsContextMut, WasmBacktrace};

use crate::deadline::SharedDeadline;
use crate::{Code, Failure, Run, Touch};

pub(crate) use heap::{PAGE, memory, out_of_memory, reserve};
pub use taped::{CallError, CallValue, TapedCall, add, halted, not_performed, split_halt};
pub use value::{Allocation, Record, Value, wrong_recorded_type};

/// The engine's handle to a call in progress.
pub type Caller<'a> = wasmtime::Caller<'a, Box<Run>>;

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

/// Performs a synchronous call, which borrows its arguments from the program's memory.
#[doc(hidden)]
pub fn call<R, E: From<Failure>>(
    caller: &mut Caller<'_>,
    function: &'static str,
    f: impl FnOnce(&[u8], &mut Run) -> Result<R, E>,
) -> Result<R, E> {
    let memory = memory(caller)?;
    let (bytes, run) = memory.data_and_store_mut(caller.as_context_mut());
    run.count(function);
    f(bytes, run)
}

/// Reads the arguments of an asynchronous call.
#[doc(hidden)]
pub fn begin<R>(
    caller: &mut Caller<'_>,
    function: &'static str,
    f: impl FnOnce(&[u8]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    caller.data_mut().count(function);
    f(memory(caller)?.data(caller.as_context()))
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
    let (offset, code) = (call_offset(caller), failure.code.number());
    caller.data_mut().fail(function, failure.truncated(), offset);
    code
}

/// Records the failure of a host function that has no error result. Returns the error that ends the
/// program.
fn trap(caller: &mut Caller<'_>, function: &'static str, failure: Failure) -> wasmtime::Error {
    let (offset, failure) = (call_offset(caller), failure.truncated());
    caller.data_mut().fail(function, failure.clone(), offset);
    wasmtime::Error::new(failure)
}

/// Returns the offset of the call in progress in the module's binary, or `None` if the engine does
/// not know the offset.
fn call_offset(caller: &Caller<'_>) -> Option<usize> {
    WasmBacktrace::capture(caller).frames().first().and_then(|frame| frame.module_offset())
}
