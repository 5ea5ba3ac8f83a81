//! Where the tickets of runs go: a file in the workdir, or the tenant's state where there is no workdir.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_capability::PortFuture;
use wattle_capability::files::{ISSUES_FILE, append_line};
use wattle_capability::issue::{IssueTracker, Ticket};
use wattle_capability::kv;
use wattle_rt::{Code, Failure};

/// The key of the tenant's state that holds the tickets of runs without a workdir, one line each.
const KEY: &str = ISSUES_FILE;

/// The most bytes of tickets that a tenant's state holds; the oldest give way.
const KEPT_BYTES: usize = 1 << 20;

/// Keeps tickets in `_issues.jsonl` of a workdir, one JSON line each. It is the host's own file: an overlay over the workdir does not
/// hold it back.
#[derive(Clone, Debug)]
pub struct Tickets(PathBuf);

impl Tickets {
    /// The tickets of that workdir.
    #[must_use]
    pub fn of(workdir: &Path) -> Tickets {
        Tickets(workdir.join(ISSUES_FILE))
    }
}

impl IssueTracker for Tickets {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        let path = self.0.clone();
        Box::pin(async move {
            let line = line(&ticket)?;
            let work = move || append_line(&path, &line);
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Failure::new(Code::EREMOTE, format!("the ticket cannot be kept: {error}"))),
                Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
            }
        })
    }
}

/// Keeps tickets in the state of a tenant.
pub(crate) struct Kept(Arc<dyn kv::Backend>);

impl Kept {
    pub(crate) fn new(tenant: Arc<dyn kv::Backend>) -> Kept {
        Kept(tenant)
    }
}

impl IssueTracker for Kept {
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let line = line(&ticket)?;
            let add = move |old: Option<Vec<u8>>| {
                let mut kept = old.unwrap_or_default();
                kept.extend(line);
                let over = kept.len().saturating_sub(KEPT_BYTES);
                let whole = kept.iter().skip(over).position(|byte| *byte == b'\n').map_or(0, |end| over + end + 1);
                Ok(Some(kept.split_off(if over == 0 { 0 } else { whole })))
            };
            self.0.update(KEY.to_owned(), Box::new(add)).await
        })
    }
}

/// A ticket as a line of JSON.
fn line(ticket: &Ticket) -> Result<Vec<u8>, Failure> {
    let mut line = serde_json::to_vec(ticket)
        .map_err(|error| Failure::new(Code::EREMOTE, format!("the ticket cannot be written: {error}")))?;
    line.push(b'\n');
    Ok(line)
}
