//! Ctrl-C while something is under way: once stops it, twice leaves.

use std::pin::pin;

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::output;

/// Carries work out. The first interrupt cancels the token, which is for the work to heed; at the second the work is let go
/// of, and there is nothing to give.
pub(super) async fn stoppable<T>(work: impl Future<Output = T>, cancel: &CancellationToken) -> Option<T> {
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

/// Waits for an interrupt; for ever where the system tells of none.
async fn interrupt() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
