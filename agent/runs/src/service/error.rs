//! The errors of the run service.

use wattle_store::StoreError;

use crate::journal::{ForkError, PendingApproval};

/// The reason why a run was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The service accepts no new runs.
    #[error("the service is about to stop")]
    Stopping,
    /// The maximum number of runs has been reached.
    #[error("{0} runs are active, the maximum")]
    TooManyRuns(usize),
    /// The tenant already has the maximum number of active runs.
    #[error("{0} runs of this tenant are active, the maximum")]
    TenantBusy(usize),
    /// The tenant already has the maximum number of queued runs.
    #[error("{0} runs of this tenant are queued already")]
    QueueFull(usize),
    /// The session already has the maximum number of waiting runs.
    #[error("{0} messages of this session are waiting already")]
    SessionBusy(usize),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason why an approval cannot be answered, or why a run cannot be resumed, released,
/// cancelled or forked.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is no such run.
    #[error("there is no such run")]
    Unknown,
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// The run is not waiting for this kind of answer.
    #[error("the run does not wait for this answer")]
    NotAsked,
    /// No approval is pending for this call.
    #[error("the run does not wait for an answer about the call `{0}`")]
    NotAskedAbout(String),
    /// The run is still waiting for another answer.
    #[error("the run waits for an answer: call {}: {}", .0.call, .0.question)]
    Pending(PendingApproval),
    /// The run is parked after repeatedly crashing its process. An operator must release it.
    #[error("the run is parked: {0}")]
    Parked(String),
    /// The run is active in another process.
    #[error("the run is under way in another process")]
    Held,
    /// The run's agent no longer exists, or cannot be used.
    #[error("{0}")]
    Agent(String),
    /// The run has no such step.
    #[error("the run has {has} steps, and cannot be forked at step {asked}")]
    TooFar {
        /// The requested step.
        asked: u32,
        /// Number of steps in the run.
        has: u32,
    },
    /// The run may have more steps than are allowed now.
    #[error("the run may have more steps than the {limit} that are allowed now; start a new run")]
    OverLimit {
        /// The maximum number of steps.
        limit: u32,
    },
    /// The run may use more tokens or money than are allowed now. The string says so.
    #[error("{0}")]
    OverBudget(String),
    /// The run has an engine of its own, which does not allow this. The string is the reason.
    #[error("{0}")]
    Engine(String),
    /// The run cannot be started now.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ForkError> for AnswerError {
    fn from(error: ForkError) -> AnswerError {
        match error {
            ForkError::TooFar { asked, has } => AnswerError::TooFar { asked, has },
            ForkError::OverLimit { limit } => AnswerError::OverLimit { limit },
            ForkError::OverBudget => AnswerError::OverBudget(error.to_string()),
            ForkError::Engine => AnswerError::Engine(error.to_string()),
            ForkError::Store(error) => AnswerError::Store(error),
        }
    }
}
