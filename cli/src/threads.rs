//! The threads that run commands. A command confines the process before it starts them, because the
//! confinement applies only to threads that are started afterwards.

use tokio::runtime::{Builder, Runtime};

use crate::fault::{Exit, Fault};
use crate::setup;

/// Runs a command on new threads and stops all remaining tasks when the command ends.
///
/// # Errors
/// If the threads cannot be started, or the command fails.
pub(crate) fn run<T: Into<Exit>>(
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<Exit, Fault> {
    let runtime = started(Builder::new_multi_thread().enable_all().build())?;
    let done = runtime.block_on(then_close(work));
    runtime.shutdown_background();
    done.map(T::into)
}

/// Runs a lookup whose result the confinement depends on. All threads of the lookup end before this
/// function returns.
///
/// # Errors
/// If the lookup cannot be started or fails.
pub(crate) fn look_up<T>(lookup: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    started(Builder::new_current_thread().enable_all().build())?.block_on(then_close(lookup))
}

/// Awaits the work and then closes the stores that it used, while the threads still exist.
async fn then_close<T>(work: impl Future<Output = T>) -> T {
    let done = work.await;
    setup::close_stores().await;
    done
}

fn started(runtime: std::io::Result<Runtime>) -> Result<Runtime, Fault> {
    runtime.map_err(|error| Fault::failed(format!("failed to start: {error}")))
}
