//! `issue`: tickets about features that programs and models need but do not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use wattle_rt::{Code, Config, Failure, Run, Service, capability};

use crate::PortFuture;
use crate::files::ISSUES_FILE;
use crate::history::RunHistoryGrant;
use crate::sys::now_ms;

/// The destination of tickets: a file on the host, or the tenant's state.
pub const TICKETS: Service = Service {
    name: "tickets",
    label: "tickets",
    verb: "file a ticket",
    capability: "issue",
    is_class: false,
    depends_on: &["fs", "kv"],
    leaves_machine: true,
    kept_in: Some(ISSUES_FILE),
};

capability! {
    /// Tickets about missing features, for the operators.
    pub const ISSUE: "issue" 1;

    /// Files a ticket about a missing feature: title, what you need and why, what you tried (0 for
    /// nothing); returns what to do next
    #[example = r#"(ret (str.slice (issue.file "no PDF reader" "read invoices" 0) 0 5))"# => "filed"]
    #[prompt(name)]
    #[effect(once)]
    #[touches(TICKETS)]
    async file(title: str, need: str, tried: opt_str) with Issues -> ptr: str ! EBOUND EBUDGET EREMOTE = file;
}

/// Maximum number of tickets per run.
const MAX_TICKETS: u32 = 20;
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 200;
/// Maximum length of each of the fields `need` and `tried`, in characters.
const MAX_TEXT: usize = 4_000;

/// A ticket about a missing feature. It is serialized as one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ticket {
    /// The time when the ticket was filed, in milliseconds since 1970.
    pub ts: i64,
    /// The id of the agent run that filed the ticket. `None` if a program filed it without an
    /// agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The missing feature, in a few words.
    pub title: String,
    /// A description of what is needed, and why.
    pub need: String,
    /// The workarounds attempted so far. May be empty.
    pub tried: String,
}

/// The port to an issue tracker. If a ticket cannot be stored, the failure is `EREMOTE`, or `EBUDGET` if
/// there are too many.
pub trait IssueTracker: Send + Sync {
    /// Files a ticket.
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()>;
}

/// The `issue` grant: a tracker. All programs that share the grant may file 20 tickets in total.
pub struct Issues {
    tracker: Arc<dyn IssueTracker>,
    filed: AtomicU32,
}

impl Issues {
    /// Creates a grant under which no ticket has been filed yet.
    #[must_use]
    pub fn new(tracker: Arc<dyn IssueTracker>) -> Self {
        Issues { tracker, filed: AtomicU32::new(0) }
    }
}

impl Config for Issues {
    const CAPABILITIES: &'static [&'static str] = &["issue"];
}

async fn file(
    issues: Arc<Issues>,
    run: &mut Run,
    title: String,
    need: String,
    tried: Option<String>,
) -> Result<String, Failure> {
    let title = validate(
        "title",
        &title.split_whitespace().collect::<Vec<_>>().join(" "),
        MAX_TITLE,
        true,
    )?;
    let need = validate("need", &need, MAX_TEXT, true)?;
    let tried = validate("tried", &tried.unwrap_or_default(), MAX_TEXT, false)?;
    let count = |filed: u32| (filed < MAX_TICKETS).then_some(filed + 1);
    if issues.filed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_err() {
        let message =
            format!("the run has filed {MAX_TICKETS} tickets, the maximum; continue without");
        return Err(Failure::new(Code::EBUDGET, message));
    }
    let id = run.grants().config::<RunHistoryGrant>().map(|history| history.0.run_id().to_owned());
    let reply = format!(
        "filed: {title}\nMention in your answer that this is missing, and continue with what you \
         have."
    );
    issues.tracker.file(Ticket { ts: now_ms(run), run: id, title, need, tried }).await?;
    Ok(reply)
}

/// Validates and trims a field of a ticket.
fn validate(name: &str, text: &str, max: usize, required: bool) -> Result<String, Failure> {
    let wrong =
        |why: String| Err(Failure::new(Code::EBOUND, format!("`{name}` of the ticket {why}")));
    let text = text.trim();
    match text.chars().count() {
        0 if required => wrong("is empty".to_owned()),
        length if length > max => wrong(format!("has {length} characters, more than {max}")),
        _ => Ok(text.to_owned()),
    }
}
