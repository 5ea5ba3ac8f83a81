//! A bug in the host ends the run that met it, and nothing else.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

/// What people are told about a run that a bug ended. What the bug is, the log says: it may hold what is not theirs to see.
pub(crate) const BUG: &str = "a bug in the host ended the run; the log has it under the run's id";

/// A panic on behalf of a run. It is logged when it is caught.
pub(crate) struct Bug;

/// Does some work of a run. A panic in it ends the work, not the process: whatever it shares with others is behind locks that are taken
/// over from whoever panicked.
pub(crate) async fn caught<T>(run: &str, work: impl Future<Output = T>) -> Result<T, Bug> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|payload| {
        tracing::error!(run, panic = words(&*payload), "bug: the host panicked in a run");
        Bug
    })
}

/// The words of a panic, where it has any.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
