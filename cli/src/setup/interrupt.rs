//! Handling of interrupts by the user.

use tokio_util::sync::CancellationToken;

use crate::output;

/// The reason reported for a run that the user interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted by the user";

/// Returns a token that the first interrupt cancels. A second interrupt ends the process. The
/// signal handler is installed before this function returns.
pub(crate) fn interrupt() -> CancellationToken {
    let cancel = CancellationToken::new();
    interrupt_to(&cancel);
    cancel
}

/// Makes the first interrupt trigger `cancel`, and a second one end the process.
pub(crate) fn interrupt_to(cancel: &CancellationToken) {
    let token = cancel.clone();
    // Without a handler, the system's default remains: an interrupt ends the process.
    if let Ok(mut interrupts) = interrupts() {
        tokio::spawn(async move {
            interrupts.recv().await;
            token.cancel();
            output::note("stopping … (again to stop at once)");
            interrupts.recv().await;
            std::process::exit(130);
        });
    }
}

fn interrupts() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}
