//! Containment of bugs: a panic in the host ends only the run that caused it.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// The message that a user sees if a bug ended the run. The panic message appears only in the log,
/// because it can contain data that the user must not see.
pub(crate) const BUG: &str = "a bug in the host ended the run; the log has it under the run's id";

/// A panic during a run. It is logged when it is caught.
#[derive(Debug)]
pub struct Bug;

/// Awaits `work`, which is part of the run with the id `run`. Catches panics, so that the process
/// survives, and returns [`Bug`] after a panic. All state that is shared with other runs is behind
/// locks that recover from poisoning.
pub async fn caught<T>(run: &str, work: impl Future<Output = T>) -> Result<T, Bug> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| {
        tracing::error!(run, panic = message(&*payload), "bug: the host panicked in a run");
        Bug
    })
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
