//! The cancellation of a run, with its reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Cancels a run, and says why. Clones cancel the same run.
///
/// A run is cancelled for certain between two rounds to the model. Within a round, its request is
/// dropped and its programs are stopped.
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
    /// Creates a cancellation that has not happened.
    #[must_use]
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancels. The first reason counts.
    pub fn cancel(&self, reason: impl Into<String>) {
        if !self.is_cancelled() {
            _ = self.reason.set(reason.into());
        }
        self.token.cancel();
    }

    /// Returns true if it has happened.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until it happens.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Returns the reason, or an empty text if there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        match (self.reason.get(), &self.above) {
            (Some(reason), _) => reason,
            (None, Some(above)) => above.reason(),
            (None, None) => "",
        }
    }

    /// Returns the token, for code that knows no reasons.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Returns a cancellation that also happens when this one does.
    #[must_use]
    pub fn child(&self) -> Cancel {
        let (token, above) = (self.token.child_token(), Some(Arc::new(self.clone())));
        Cancel { token, reason: Arc::default(), above }
    }
}

/// A token cancels without a reason.
impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Cancel {
        Cancel { token, ..Cancel::default() }
    }
}
