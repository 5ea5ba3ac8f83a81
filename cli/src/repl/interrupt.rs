//! Handling of Ctrl-C. The first interrupt asks the current work to stop, and a second one soon
//! afterwards ends the session.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::signal::ctrl_c;
use wattle_agent::Cancel;

use crate::output;
use crate::setup::INTERRUPTED;

/// Maximum time between two interrupts that end the session.
pub(super) const TWICE: Duration = Duration::from_secs(2);

/// Runs `work`. The first interrupt triggers `cancel`, which `work` observes. If a second interrupt
/// follows within [`TWICE`], drops `work` and returns `None`.
pub(super) async fn stoppable<T>(work: impl Future<Output = T>, cancel: &Cancel) -> Option<T> {
    let mut work = pin!(work);
    let mut last: Option<Instant> = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = interrupt() => {
                if last.is_some_and(|last| last.elapsed() < TWICE) {
                    return None;
                }
                last = Some(Instant::now());
                cancel.cancel(INTERRUPTED);
                output::note("stopping … (Ctrl-C again to leave)");
            }
        }
    }
}

/// Waits for an interrupt. Waits forever if the process cannot receive interrupts.
async fn interrupt() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
