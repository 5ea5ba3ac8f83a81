//! The reasons why a run cannot be resumed.

use wattle_store::StoreError;

use super::PendingApproval;

/// The reason why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The run has ended.
    #[error("the run `{0}` has ended")]
    Ended(String),
    /// This process or another one is already driving the run.
    #[error("the run `{0}` is under way in another process")]
    Held(String),
    /// The run is still waiting for an approval.
    #[error("the run waits for an answer: call {}: {}", .0.call, .0.question)]
    Pending(PendingApproval),
    /// Several attempts to drive the run terminated the process. An operator must release the run.
    #[error("the run `{run}` is parked: {reason}")]
    Parked {
        /// The run's id.
        run: String,
        /// A message with the number of attempts and the run's last known activity.
        reason: String,
    },
    /// No approval is pending for this call.
    #[error("the run does not wait for an answer about the call `{0}`")]
    NotAsked(String),
    /// The run's loop is an engine that this process does not have. The string names both.
    #[error("{0}")]
    Engine(String),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
