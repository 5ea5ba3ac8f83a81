//! Issue trackers for runs. Tickets are stored in a file beside the trace, or in the tenant's state
//! if there is no trace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_capability::files::{ISSUES_FILE, append_line};
use wattle_capability::issue::{IssueTracker, Ticket};
use wattle_capability::{PortFuture, kv};
use wattle_rt::{Code, Failure};

/// The key in the tenant's state that holds the tickets of runs without a trace, one per line.
const KEY: &str = ISSUES_FILE;

/// Maximum size of the tickets in a tenant's state, in bytes. The oldest tickets are dropped first.
const MAX_BYTES: usize = 1 << 20;

/// Maximum size of a file of tickets, in bytes. Nothing is dropped: somebody has to read them.
const MAX_FILE: u64 = 16 << 20;

/// An issue tracker that appends tickets to `_issues.jsonl` in a folder, one JSON object per line. The
/// file has at most 16 MiB.
#[derive(Clone, Debug)]
pub struct IssueFile(PathBuf);

impl IssueFile {
    /// Returns the issue tracker of a folder, usually that of the trace. The folder is created
    /// when the first ticket is filed.
    #[must_use]
    pub fn of(folder: &Path) -> IssueFile {
        IssueFile(folder.join(ISSUES_FILE))
    }
}

impl IssueTracker for IssueFile {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        let path = self.0.clone();
        Box::pin(async move {
            let line = line(&ticket)?;
            let work = move || {
                path.parent().map_or(Ok(()), wattle_store::create_folder)?;
                let size = path.metadata().map_or(0, |file| file.len());
                if size.saturating_add(line.len() as u64) > MAX_FILE {
                    return Ok(false);
                }
                append_line(&path, &line).map(|()| true)
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(true)) => Ok(()),
                Ok(Ok(false)) => {
                    let why = "the list of tickets is full; somebody has to read and remove them";
                    Err(Failure::new(Code::EBUDGET, why))
                }
                Ok(Err(error)) => {
                    Err(Failure::new(Code::EREMOTE, format!("failed to save the ticket: {error}")))
                }
                Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
            }
        })
    }
}

/// An issue tracker that stores tickets in a tenant's state.
pub(crate) struct IssueState(Arc<dyn kv::Backend>);

impl IssueState {
    pub(crate) fn new(tenant: Arc<dyn kv::Backend>) -> IssueState {
        IssueState(tenant)
    }
}

impl IssueTracker for IssueState {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let line = line(&ticket)?;
            let add = move |old: Option<Vec<u8>>| {
                let mut tickets = old.unwrap_or_default();
                tickets.extend_from_slice(&line);
                let over = tickets.len().saturating_sub(MAX_BYTES);
                let whole = tickets
                    .iter()
                    .skip(over)
                    .position(|byte| *byte == b'\n')
                    .map_or(0, |end| over + end + 1);
                Ok(Some(tickets.split_off(if over == 0 { 0 } else { whole })))
            };
            self.0.update(KEY.to_owned(), Box::new(add)).await
        })
    }
}

/// Serializes a ticket as a line of JSON.
fn line(ticket: &Ticket) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(ticket).map_err(|error| {
        Failure::new(Code::EREMOTE, format!("failed to serialize the ticket: {error}"))
    })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_file_takes_no_more_tickets() {
        let folder = tempfile::tempdir().unwrap();
        let (title, need, tried) = ("t".to_owned(), "n".to_owned(), String::new());
        let ticket = Ticket { ts: 1, run: None, title, need, tried };
        let tracker = IssueFile::of(folder.path());
        tracker.file(ticket.clone()).await.unwrap();
        let path = folder.path().join(ISSUES_FILE);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(MAX_FILE - 10).unwrap();
        let refused = tracker.file(ticket).await.unwrap_err();
        assert_eq!(refused.code, Code::EBUDGET);
        assert_eq!(path.metadata().unwrap().len(), MAX_FILE - 10);
    }
}
