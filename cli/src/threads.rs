//! The threads that carry commands out. A command puts up its walls before it starts them, since a wall holds for the threads that come
//! after it.

use tokio::runtime::{Builder, Runtime};

use crate::fault::Fault;

/// Carries out the work of a command on threads of its own, and ends with it: what still runs then is of no use to anybody.
///
/// # Errors
/// If the threads cannot be started, or as the work.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let runtime = started(Builder::new_multi_thread().enable_all().build())?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// Looks something up that decides which walls are put up, and leaves no thread behind.
///
/// # Errors
/// If the lookup cannot be started, or as the lookup.
pub(crate) fn look_up<T>(lookup: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    started(Builder::new_current_thread().enable_all().build())?.block_on(lookup)
}

fn started(runtime: std::io::Result<Runtime>) -> Result<Runtime, Fault> {
    runtime.map_err(|error| Fault::failed(format!("failed to start: {error}")))
}
