//! `issue`: tickets about what programs and models would need and do not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::PortFuture;
use crate::history::RunHistoryGrant;
use crate::sys::now_ms;

capability! {
    /// Tickets about what is missing, for the people who run this.
    pub const ISSUE: "issue" 1;

    /// Files a ticket about something that is missing: a title, what is needed and for what, what was tried (0 for nothing); gives
    /// what to do next
    #[example = r#"(ret (str.slice? (issue.file? "no PDF reader" "read invoices" 0) 0 5))"# => "filed"]
    #[prompt(name)]
    #[effect(once)]
    #[touches(tickets)]
    async file(title: str, need: str, tried: opt_str) -> ptr: str ! EBOUND EBUDGET EREMOTE = file;
}

/// The most tickets of one run.
const TICKETS: u32 = 20;
/// The most characters of a title, and of each other text.
const TITLE: usize = 200;
const TEXT: usize = 4_000;

/// One ticket; its JSON is one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ticket {
    /// When it was filed, in milliseconds since 1970.
    pub ts: i64,
    /// The run that it comes from, where a run of the loop filed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What is missing, in a few words.
    pub title: String,
    /// What is needed, and for what.
    pub need: String,
    /// What was tried instead; may be empty.
    pub tried: String,
}

/// The port to where tickets go, implemented by whoever wires a run. One that cannot be kept is told as `EREMOTE`.
pub trait IssueTracker: Send + Sync {
    /// Takes a ticket in.
    fn file(&self, ticket: Ticket) -> PortFuture<'_, ()>;
}

/// Grants `issue` on that desk, for 20 tickets of all the programs that share this grant.
pub struct Issues {
    desk: Arc<dyn IssueTracker>,
    filed: AtomicU32,
}

impl Issues {
    /// A grant of which nothing is used.
    #[must_use]
    pub fn new(desk: Arc<dyn IssueTracker>) -> Self {
        Issues { desk, filed: AtomicU32::new(0) }
    }
}

impl Config for Issues {
    const CAPABILITY: &'static str = "issue";
}

async fn file(run: &mut Run, title: String, need: String, tried: Option<String>) -> Result<String, Failure> {
    let title = checked("title", &title.split_whitespace().collect::<Vec<_>>().join(" "), TITLE, true)?;
    let need = checked("need", &need, TEXT, true)?;
    let tried = checked("tried", &tried.unwrap_or_default(), TEXT, false)?;
    let issues = run.config::<Issues>()?;
    let count = |filed: u32| (filed < TICKETS).then_some(filed + 1);
    if issues.filed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_err() {
        let words = format!("the run has filed {TICKETS} tickets, which is the most; carry on without");
        return Err(Failure::new(Code::EBUDGET, words));
    }
    let id = run.config::<RunHistoryGrant>().ok().map(|told| told.0.run_id().to_owned());
    let reply = format!("filed: {title}\nNote in your answer that this is missing, and carry on with what there is.");
    issues.desk.file(Ticket { ts: now_ms(run), run: id, title, need, tried }).await?;
    Ok(reply)
}

/// A text of a ticket without blanks around it.
fn checked(name: &str, text: &str, most: usize, required: bool) -> Result<String, Failure> {
    let wrong = |why: String| Err(Failure::new(Code::EBOUND, format!("`{name}` of the ticket {why}")));
    let text = text.trim();
    match text.chars().count() {
        0 if required => wrong("is empty".to_owned()),
        length if length > most => wrong(format!("has {length} characters; {most} is the most")),
        _ => Ok(text.to_owned()),
    }
}
