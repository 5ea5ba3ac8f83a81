//! `/cost`, `/context`, `/compact`, `/undo`, `/copy`: the conversation and its cost.

use std::fmt::Write;
use std::sync::Arc;

use wattle_agent::host::journal::{Journal as _, RunFilter, Status};
use wattle_agent::host::machine::{Role, Usage};
use wattle_agent::host::{Compacted, Rewind, UsageMeter, compact as compact_messages};

use crate::fault::Fault;
use crate::output::{self, markdown};
use crate::progress::{counted, grouped, spent};
use crate::repl::Repl;
use crate::repl::history::exchanges;
use crate::repl::session::{STEPS, Session};
use crate::setup;

/// Estimated number of bytes per token.
const TOKEN_BYTES: usize = 4;

/// Prints the token usage of each run, and the total.
pub(super) async fn cost(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let runs = &repl.session.spent;
    let shown = |usage: Usage| spent(usage).unwrap_or_else(|| "no tokens were counted".to_owned());
    if runs.len() > 1 {
        for (at, usage) in runs.iter().enumerate() {
            output::text(&format!("{:>3}  {}", at + 1, shown(*usage)))?;
        }
    }
    let total = runs.iter().fold(Usage::default(), |sum, usage| sum + *usage);
    output::text(&format!("{}: {}", counted(runs.len(), "message"), shown(total)))
}

/// Prints the sections of the next request, each with its estimated number of tokens.
pub(super) async fn context(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let model = session.model()?;
    let history = session.kept.store.history(&session.kept.id, None).await?.messages;
    let agent = session.setup.agent().await?;
    let (own, settings) =
        session.setup.for_agent(&agent, &session.setup.run_settings(STEPS, &model)?)?;
    let access = own.access(
        Arc::clone(&session.files),
        Some(&session.kept),
        Some((Arc::clone(&model), UsageMeter::default())),
        &settings,
    )?;
    let grants = own.grants(access);
    let tenant = setup::tenant(&own.config)?;
    let first = history.iter().find(|message| message.role == Role::User);
    let host = &own.host;
    let listing = host.listing(
        Some((&tenant, &session.kept.id)),
        first.map_or("", |message| message.content.as_str()),
    );
    let dialect = settings.dialect.choose(model.as_ref());
    let prompt = host.prompt(&settings, &grants, &listing, dialect);
    let of = |role: Role| -> (usize, usize) {
        let messages = history.iter().filter(|message| message.role == role);
        messages.fold((0, 0), |(count, bytes), message| (count + 1, bytes + message.content.len()))
    };
    let ((asked, asked_bytes), (said, said_bytes), (results, result_bytes)) =
        (of(Role::User), of(Role::Assistant), of(Role::Tool));
    let parts = [
        ("instructions, the same in all sessions".to_owned(), prompt.stable.len()),
        ("instructions of this session".to_owned(), prompt.rest.len()),
        (counted(asked, "message") + " of the user, with observations", asked_bytes),
        (counted(said, "message") + " of the model", said_bytes),
        (counted(results, "result") + " of functions", result_bytes),
    ];
    let mut text = String::new();
    let total: usize = parts.iter().map(|(_, bytes)| bytes).sum();
    let shown = parts.iter().filter(|(_, bytes)| *bytes > 0);
    for (what, bytes) in shown.chain([&("in all, before the next message".to_owned(), total)]) {
        _ = writeln!(text, "{:>9}  {what}", grouped((bytes / TOKEN_BYTES) as u64));
    }
    output::text(&text)?;
    output::aside("tokens are estimated: 4 bytes each; `/compact` shortens the messages");
    Ok(())
}

/// Replaces all messages before the last exchange with a summary that the model writes.
pub(super) async fn compact(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let before = session.snapshot("/compact").await?;
    let (model, settings) = (session.model()?, session.setup.settings(STEPS));
    let compacted = compact_messages(model.as_ref(), &settings, &before.messages).await;
    let Some(Compacted { summary, replaced, mut messages, usage }) =
        compacted.map_err(Fault::failed)?
    else {
        output::aside("there is nothing to summarize before the last message");
        return Ok(());
    };
    session.spent.push(usage);
    if summary.is_empty() {
        return Err(Fault::failed("the model returned an empty summary").hint("try again"));
    }
    messages.extend(before.messages.iter().skip(replaced).cloned());
    session.replace(messages).await?;
    session.push_undo(before).await?;
    markdown::print(&summary)?;
    let removed = counted(replaced, "message");
    output::aside(&format!("the summary replaces {removed}; /undo brings them back"));
    Ok(())
}

/// Copies the last answer to the clipboard of the terminal.
pub(super) async fn copy(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let newest = RunFilter {
        session: Some(session.kept.id.clone()),
        status: Some(Status::Ended),
        limit: Some(1),
        ..RunFilter::default()
    };
    let runs = session.kept.store.runs(newest).await?;
    let ending = runs.first().and_then(|run| Some(&run.summary.as_ref()?.ending));
    let answer = ending.map_or("", |ending| ending.text().trim());
    if answer.is_empty() {
        return Err(Fault::usage("there is no answer to copy yet"));
    }
    if !output::copy(answer) {
        return Err(Fault::failed("stdout is not a terminal, which has the clipboard"));
    }
    let length = grouped(answer.chars().count() as u64);
    output::aside(&format!("sent {length} characters to the clipboard of the terminal (OSC 52)"));
    Ok(())
}

/// Restores the state before the last message, or before `/compact`.
pub(super) async fn undo(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let state = match session.undo.pop() {
        Some(state) => state,
        None => match session.recorded().await? {
            Some(state) => state,
            None => return undo_stored(session).await,
        },
    };
    session.replace(state.messages.clone()).await?;
    let files = if session.restore_files(&state).await? {
        ""
    } else {
        "; the files stay as they are, because they have changed since or were applied"
    };
    let variables = match session.restore_variables(&state).await? {
        Rewind::Done => "; the tenant's variables and memory stay as they are",
        Rewind::Changed => "; the variables stay as they are, because they have changed since",
        Rewind::Forgotten => {
            "; the variables stay as they are, because their earlier values are no longer recorded"
        }
    };
    output::aside(&format!("undone: {}{files}{variables}", state.what));
    Ok(())
}

/// Drops the last exchange from the stored conversation. `/undo` calls this function if neither a
/// saved state nor the record of the exchange's run is left.
async fn undo_stored(session: &Session) -> Result<(), Fault> {
    let mut messages = session.conversation().await?;
    let Some(begin) = exchanges(&messages).last().copied() else {
        return Err(Fault::usage("there is nothing to undo"));
    };
    messages.truncate(begin);
    session.replace(messages).await?;
    let note = "undone: the last message; the files and variables stay as they are, because its run \
                is not the last one that is recorded";
    output::aside(note);
    Ok(())
}
