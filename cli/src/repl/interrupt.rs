//! Handles Ctrl-C while a task runs. The first Ctrl-C asks the task to stop, and the second one
//! abandons it.

use std::pin::pin;

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::output;

/// Runs `work`. The first interrupt cancels the token, which `work` observes. The second one drops
/// `work`, and `None` is returned.
pub(super) async fn stoppable<T>(
    work: impl Future<Output = T>,
    cancel: &CancellationToken,
) -> Option<T> {
    let mut work = pin!(work);
    tokio::select! {
        done = &mut work => return Some(done),
        () = interrupt() => {
            cancel.cancel();
            output::note("stopping … (Ctrl-C again to leave)");
        }
    }
    tokio::select! {
        biased;
        done = &mut work => Some(done),
        () = interrupt() => None,
    }
}

/// Waits for an interrupt. Waits forever if the process cannot receive interrupts.
async fn interrupt() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
