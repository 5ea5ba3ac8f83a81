//! The error for a run that did not complete.

use std::fmt;

use wattle_runs::journal::PendingApproval;

use super::report::{ReportStatus, RunReport};

/// The error for a run that did not complete. It contains the report of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFailure {
    report: Box<RunReport>,
    pending: Vec<PendingApproval>,
}

impl RunFailure {
    pub(super) fn new(report: RunReport) -> RunFailure {
        RunFailure { report: Box::new(report), pending: Vec::new() }
    }

    pub(super) fn parked(report: RunReport, pending: Vec<PendingApproval>) -> RunFailure {
        RunFailure { report: Box::new(report), pending }
    }

    /// Returns the report of the run.
    #[must_use]
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Returns the reason for the failure. It is empty if the run was cancelled without a reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.report.abort_reason.as_deref().unwrap_or_default()
    }

    /// Returns true if the run was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.report.status == ReportStatus::Cancelled
    }

    /// Returns the approvals that the run is waiting for. Only a run with a store can wait; see
    /// [`Agent::resume`](super::Agent::resume).
    #[must_use]
    pub fn pending(&self) -> &[PendingApproval] {
        &self.pending
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.report.status, self.reason()) {
            (ReportStatus::Cancelled, "") => f.write_str("the run was cancelled"),
            (ReportStatus::Cancelled, reason) => write!(f, "the run was cancelled: {reason}"),
            (ReportStatus::Parked, reason) => write!(f, "the run waits for a person: {reason}"),
            (_, reason) => write!(f, "the run failed: {reason}"),
        }
    }
}

impl std::error::Error for RunFailure {}
