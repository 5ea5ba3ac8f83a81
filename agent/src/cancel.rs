//! The cancellation of a run, with its reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// A cancellation of a run, with its reason. Clones cancel the same run.
///
/// A run always notices its cancellation between two steps. Within a step, the model request is
/// dropped and the programs are stopped.
///
/// ```
/// use wattle_agent::Cancel;
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
    /// Creates a cancellation that has not been triggered.
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

    /// Returns the token, for code that does not use reasons.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns a cancellation that is also triggered when this one is.
    #[must_use]
    pub fn child(&self) -> Cancel {
        let (token, above) = (self.token.child_token(), Some(Arc::new(self.clone())));
        Cancel { token, reason: Arc::default(), above }
    }
}

/// Creates a cancellation without a reason.
impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Cancel {
        Cancel { token, ..Cancel::default() }
    }
}
