//! The threads that run commands. A command confines the process before it starts them, because the
//! confinement applies only to threads that are started afterwards.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// If true, the system refused to start a thread.
static DENIED: AtomicBool = AtomicBool::new(false);

/// Returns the fault for the message of a panic if it means that the system refuses to start a
/// thread. The libraries that start threads panic then.
pub(crate) fn denied(panic: &str) -> Option<Fault> {
    let is_denied = ["can't spawn worker thread", "failed to spawn thread"];
    is_denied.iter().any(|words| panic.contains(words)).then(|| {
        DENIED.store(true, Ordering::Relaxed);
        Fault::configuration("the system refuses to start another thread of this process")
            .hint("raise `ulimit -u`, `TasksMax=` of the unit, or `pids_limit` of the container")
    })
}

/// Returns true if the system has refused to start a thread.
pub(crate) fn are_denied() -> bool {
    DENIED.load(Ordering::Relaxed)
}

fn started(runtime: std::io::Result<Runtime>) -> Result<Runtime, Fault> {
    runtime.map_err(|error| {
        Fault::failed(format!("failed to start: {error}"))
            .hint("raise `ulimit -n` (open files) and `ulimit -u` (threads)")
    })
}

#[cfg(test)]
mod tests {
    use super::denied;

    #[test]
    fn a_panic_of_a_library_that_starts_threads_names_the_limit() {
        let panic = "panicked at runtime/blocking/pool.rs:409:25:\nOS can't spawn worker thread: \
                     Resource temporarily unavailable (os error 11)";
        assert!(denied(panic).unwrap().hinted().unwrap().contains("`ulimit -u`"));
        assert!(denied("panicked at src/lib.rs:1:1:\nindex out of bounds").is_none());
    }
}
