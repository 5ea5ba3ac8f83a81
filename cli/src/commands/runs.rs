//! `wattle runs` and `wattle show`: lists the recorded runs, and shows one with its conversation and
//! its answer.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::TenantStore;
use wattle_agent::host::journal::{
    self, Journal as _, RunFilter, RunRecord, SharedJournal, Status,
};
use wattle_agent::host::machine::{Message, Role};
use wattle_agent::host::service::{Pending, pending};

use super::run::find;
use super::session::{ago, first_line, spoken};
use crate::args::{RunsArgs, ShowArgs};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, markdown, paint, visible};
use crate::progress::{counted, ending, spent};
use crate::{setup, trust};

/// Lists the runs of the tenant, the newest first.
pub(crate) async fn runs(args: RunsArgs, flags: &[Layer]) -> Result<(), Fault> {
    let store = setup::store(&trust::gather(flags)?)?;
    let mut lines = Vec::new();
    for run in store.runs(RunFilter::default()).await? {
        let open = open(&store, &run).await?;
        lines.push((run, open));
    }
    if args.json {
        let all: Json = lines.iter().map(|(run, open)| as_json(run, open)).collect();
        return output::json(&all);
    }
    if lines.is_empty() {
        output::note("the store has no runs");
    }
    let lines: String = lines.iter().map(|(run, open)| line(run, open)).collect();
    output::data(lines.as_bytes())
}

/// Returns what a run that has not ended waits for.
async fn open(store: &TenantStore, run: &RunRecord) -> Result<Pending, Fault> {
    Ok(match (run.status, &run.reason) {
        // Its child runs may also wait for approvals or for an operator.
        (Status::Parked, None) => pending(store, &run.id).await?,
        (_, reason) => Pending { reason: reason.clone(), ..Pending::default() },
    })
}

/// Returns the outcome of a run in one word.
fn outcome(run: &RunRecord) -> &'static str {
    let Some(summary) = &run.summary else { return run.status.name() };
    match setup::exit_of(&summary.ending) {
        Exit::Done => "done",
        Exit::Bound => "stopped",
        Exit::Denied => "blocked",
        Exit::Interrupted => "cancelled",
        _ => "failed",
    }
}

fn as_json(run: &RunRecord, Pending { approvals, reason }: &Pending) -> Json {
    let waiting: Vec<Json> = approvals
        .iter()
        .map(|open| json!({"call": open.call, "question": open.question}))
        .collect();
    let summary = run.summary.as_ref();
    json!({
        "run": run.id, "status": run.status.name(), "outcome": outcome(run),
        "session": run.session, "created": run.created, "used": run.used,
        "message": run.start.message, "steps": summary.map(|summary| summary.steps),
        "usage": summary.map(|summary| summary.usage), "waiting": waiting,
        "attempts": run.attempts, "reason": reason,
    })
}

fn line(run: &RunRecord, Pending { approvals, reason }: &Pending) -> String {
    let cost = run.summary.as_ref().and_then(|summary| summary.usage.cost);
    let cost = cost.map_or("-".to_owned(), |cost| cost.to_string());
    let begun = format!("{} ago", ago(run.created));
    let message = first_line(&run.start.message);
    let (outcome, message) = (outcome(run), visible(&message));
    let reason = reason
        .iter()
        .map(|reason| format!("  {}; `wattle session release {}`\n", visible(reason), run.id));
    let open = approvals
        .iter()
        .map(|open| format!("  waits: call {}: {}\n", open.call, visible(&open.question)));
    let below: String = reason.chain(open).collect();
    format!("{} {begun:<12} {outcome:<9} {cost:<8} {message}\n{below}", run.id)
}

/// Shows a run: its outcome, its conversation without the system prompt, and its answer.
pub(crate) async fn show(args: ShowArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (store, run) = find(&args.run, flags).await?;
    let open = open(&store, &run).await?;
    let journal: SharedJournal = Arc::new(store);
    let mut messages = journal::conversation(&journal, &run).await?;
    messages.retain(|message| message.role != Role::System);
    let end = run.summary.as_ref().map(|summary| &summary.ending);
    if args.json {
        let mut shown = as_json(&run, &open);
        if let Some(shown) = shown.as_object_mut() {
            shown.insert("messages".to_owned(), json!(messages));
            shown.insert("answer".to_owned(), json!(end.map(|end| end.text())));
            shown.insert("data".to_owned(), json!(end.and_then(|end| end.data())));
        }
        return output::json(&shown);
    }
    let mut parts = vec![format!("{} ago", ago(run.created))];
    parts.push(match end.map(|end| end.stop()) {
        Some(stop) => stop.map_or("failed", ending).to_owned(),
        None => run.status.name().to_owned(),
    });
    if let Some(summary) = &run.summary {
        parts.push(counted(summary.steps, "step"));
        parts.extend(spent(summary.usage));
    }
    let head = paint(NAME, &format!("run {}", run.id));
    output::styled(&format!("{head}{}\n", paint(DIM, &format!(" · {}", parts.join(" · ")))))?;
    // The last message of the model may be the answer, in the form of its dialect.
    let is_answer = |message: &mut Message| {
        message.role == Role::Assistant
            && end.is_some_and(|end| message.content.contains(end.text().trim()))
    };
    messages.pop_if(is_answer);
    output::data(spoken(&messages).as_bytes())?;
    match end {
        Some(end) => markdown::print(&format!("\n{}\n", end.text().trim())),
        None => Ok(()),
    }
}
