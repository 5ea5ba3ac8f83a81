//! Ctrl-C during work: the first stops it, the second leaves.

use std::pin::pin;

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::output;

/// Runs work. The first interrupt cancels the token, which the work observes. At the second the
/// work is dropped, and there is no result.
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

/// Waits for an interrupt, forever if the system delivers none.
async fn interrupt() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
