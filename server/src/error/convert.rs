//! Conversions of errors from other crates and modules into responses.

use axum::http::StatusCode;

use wattle_agent::host::capability::files::{ErrorKind, FilesError};
use wattle_agent::host::rt::{Code, Failure};
use wattle_agent::host::service::{AnswerError, FollowError, StartError};
use wattle_agent::host::{SessionFilesError, StoreError};

use super::ApiError;

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        if error.is_outage() {
            tracing::error!(%error, "the store cannot be used");
            return ApiError::unavailable(error.reason());
        }
        if error.is_full() {
            return ApiError::store_full(&error);
        }
        ApiError::internal(error)
    }
}

impl From<FollowError> for ApiError {
    fn from(error: FollowError) -> ApiError {
        match error {
            FollowError::Unknown => ApiError::internal("the run is gone"),
            FollowError::Below(_) | FollowError::UnknownEvent(_) => ApiError::internal(error),
            FollowError::Suspended(_) => ApiError::stopping(),
            FollowError::Store(error) => error.into(),
        }
    }
}

impl From<SessionFilesError> for ApiError {
    fn from(fault: SessionFilesError) -> ApiError {
        match fault {
            SessionFilesError::Store(error) => error.into(),
            SessionFilesError::Files(error) => error.into(),
            SessionFilesError::Replaced => ApiError::overloaded(fault.to_string()),
        }
    }
}

impl From<FilesError> for ApiError {
    fn from(error: FilesError) -> ApiError {
        if error.kind() == ErrorKind::NotFound {
            ApiError::new(StatusCode::NOT_FOUND, "not_found", error.to_string())
        } else {
            ApiError::invalid_field(error.to_string())
        }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure.code {
            Code::EBUDGET => ApiError::invalid_field(failure.reason),
            _ => ApiError::internal(failure.reason),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> ApiError {
        match error {
            StartError::Stopping => ApiError::stopping(),
            StartError::TooManyRuns(limit) => ApiError::too_many_runs(limit),
            StartError::TenantBusy(limit) => ApiError::tenant_busy(limit),
            StartError::QueueFull(limit) => ApiError::queue_full(limit),
            StartError::SessionBusy(waiting) => ApiError::session_busy(waiting),
            StartError::Store(error) => error.into(),
        }
    }
}

impl From<AnswerError> for ApiError {
    fn from(error: AnswerError) -> ApiError {
        let conflict = |code, hint: &str| {
            ApiError::new(StatusCode::CONFLICT, code, error.to_string()).hint(hint)
        };
        match error {
            AnswerError::Unknown => {
                ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such run")
            }
            AnswerError::Ended => conflict("ended", "start another run"),
            AnswerError::NotAsked
            | AnswerError::NotAskedAbout(_)
            | AnswerError::Pending(_)
            | AnswerError::Parked(_) => {
                conflict("not_waiting", "`GET /api/run/{id}` lists what the run waits for")
            }
            AnswerError::Held => conflict("held", "try again when the other process has ended"),
            AnswerError::TooFar { .. } | AnswerError::OverLimit { .. } => {
                ApiError::invalid_field(error.to_string())
            }
            AnswerError::Start(error) => error.into(),
            AnswerError::Store(error) => error.into(),
        }
    }
}
