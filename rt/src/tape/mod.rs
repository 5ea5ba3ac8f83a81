//! The tape of a program: the results of its host functions, in the order of its calls.
//!
//! Every host function with an effect outside the program consults the tape before it does
//! anything. A recording tape records the call before it is performed, and its result afterwards. A
//! replaying tape returns the recorded result, and the call is not performed. Apart from these
//! results, a program depends only on its source and its arguments, so a replay repeats the run
//! exactly.
//!
//! A call is identified by the program's [`path`](CallId::path) and the number of the call within
//! the program. The path of a nested program extends the path of the call that starts it, so the
//! relative progress of concurrent programs does not matter.

mod args;
mod cursor;
mod encoding;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use crate::{CallEffect, Failure};

pub use args::{Arg, Args};
pub(crate) use cursor::{PriorEnd, TapeCursor, TimedOut};
pub use encoding::{decode, encode};

/// The identity of a call on a tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId {
    /// The path of the program, which is empty for the program that the run itself called. For each
    /// level of nesting, it contains three numbers: the number of the call that started the
    /// program, the number of times that this call had started programs before, and the program's
    /// index among those started together.
    pub path: Arc<[u32]>,
    /// The number of the call within the program: 0 for the program itself, 1 for the guard's
    /// question about it, and 2 onwards for its calls in order.
    pub number: u32,
    /// The function's full name, or [`PROGRAM`] or [`QUESTION`].
    pub function: Cow<'static, str>,
    /// The effect that the call has outside the program.
    pub effect: CallEffect,
    /// A hash of all arguments.
    pub digest: [u8; 16],
    /// The arguments in readable form, truncated if they are long.
    pub args: String,
}

impl CallId {
    /// Creates the identity of a call with a number of its own, which the run makes for the program
    /// that it called itself.
    pub(crate) fn of_program(
        number: u32,
        function: &'static str,
        effect: CallEffect,
        args: Args,
    ) -> CallId {
        let (digest, args) = args.finish();
        let function = Cow::Borrowed(function);
        CallId { path: Arc::from([]), number, function, effect, digest, args }
    }
}

/// The function name that represents the program itself on a tape.
pub const PROGRAM: &str = "program";
/// The function name that represents a guard's question about a program on a tape.
pub const QUESTION: &str = "question";

/// A value that a host function returned to a program.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedValue {
    /// No value.
    Unit,
    /// A 32-bit integer.
    Int(i32),
    /// A 64-bit integer.
    Long(i64),
    /// A 64-bit float.
    Float(f64),
    /// A string or bytes.
    Bytes(Vec<u8>),
    /// The items of an array.
    Items(Vec<Vec<u8>>),
}

impl RecordedValue {
    /// Returns the approximate size of the value, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            RecordedValue::Unit
            | RecordedValue::Int(_)
            | RecordedValue::Long(_)
            | RecordedValue::Float(_) => 8,
            RecordedValue::Bytes(bytes) => bytes.len(),
            RecordedValue::Items(items) => items.iter().map(|item| item.len() + 4).sum(),
        }
    }
}

/// The result of a call.
pub type CallResult = Result<RecordedValue, Failure>;

/// The action that a tape selects for a call: perform it, return its recorded result, or perform it
/// again but return the recorded result.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// The call is performed.
    Perform,
    /// The call was performed before, with this result. It is not performed again.
    Recorded(CallResult),
    /// The call was performed before, with this result, but its changes were lost with the run's
    /// memory. It is performed again, and the program gets the recorded result.
    Again(CallResult),
}

/// The reason why a program must not continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Halt(pub String);

/// The boxed future that [`Tape::flush`] returns.
pub type Flush<'a> = Pin<Box<dyn Future<Output = Result<(), Halt>> + Send + 'a>>;

/// The tape of a program that a run calls. All programs nested in that program share the tape, even
/// if they execute concurrently.
pub trait Tape: Send + Sync {
    /// Records that a call begins and decides whether the call is performed.
    ///
    /// # Errors
    /// If the program must not continue. The tape is then [halted](Tape::halted).
    fn begin(&self, id: &CallId) -> Result<Replay, Halt>;

    /// Records the result of a call that was performed.
    fn end(&self, id: &CallId, result: CallResult);

    /// Returns true if the records must be [flushed](Tape::flush) before the call is performed, and
    /// again afterwards if the call must not be performed twice.
    fn needs_flush(&self, id: &CallId) -> bool;

    /// Returns the idempotency key of a call. The key is the same if the program runs again and
    /// differs from the keys of all other calls in all runs.
    fn key(&self, path: &[u32], number: u32) -> String;

    /// Writes all records to durable storage.
    fn flush(&self) -> Flush<'_>;

    /// Records that nobody can answer a question now. The tape is halted, and the program waits for
    /// the answer.
    fn suspend(&self, id: &CallId) -> Halt;

    /// Returns the reason why the program must not continue, if there is one.
    fn halted(&self) -> Option<Halt>;
}
