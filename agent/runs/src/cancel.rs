//! The handle that cancels a run.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A handle that cancels a run and records the reason. Clones cancel the same run.
///
/// If a run is cancelled during a step, its model request is dropped and its programs are stopped.
/// A run that is cancelled between two steps does not start the next one.
///
/// ```
/// use wattle_runs::Cancel;
///
/// let cancel = Cancel::new();
/// let child = cancel.child();
/// cancel.cancel("the user left");
/// cancel.cancel("a second reason, which does not count");
/// assert!(child.is_cancelled());
/// assert_eq!(child.reason(), "the user left");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
    above: Option<Arc<Cancel>>,
}

impl Cancel {
    /// Creates a handle for a run that is not cancelled.
    #[must_use]
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancels the run. Only the reason from the first call counts.
    pub fn cancel(&self, reason: impl Into<String>) {
        if !self.is_cancelled() {
            _ = self.reason.set(reason.into());
        }
        self.token.cancel();
    }

    /// Returns true if the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the run is cancelled.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Returns the reason, or an empty string if there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        match (self.reason.get(), &self.above) {
            (Some(reason), _) => reason,
            (None, Some(above)) => above.reason(),
            (None, None) => "",
        }
    }

    /// Returns the run's cancellation token, for code that does not need the reason.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns a handle for a child run. Cancelling this run also cancels the child run.
    #[must_use]
    pub fn child(&self) -> Cancel {
        let (token, above) = (self.token.child_token(), Some(Arc::new(self.clone())));
        Cancel { token, reason: Arc::default(), above }
    }
}

/// Converts a token to a handle. The handle has no reason if the token is cancelled directly.
impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Cancel {
        Cancel { token, ..Cancel::default() }
    }
}
