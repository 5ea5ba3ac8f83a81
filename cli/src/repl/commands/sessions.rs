//! `/fork`, `/new`, `/clear`, `/status`, `/sessions`, `/resume`, `/vars`, `/export`: sessions and their
//! data.

use std::sync::Arc;

use wattle_agent::agents::DEFAULT_AGENT;
use wattle_agent::host::capability::kv::Backend;
use wattle_agent::host::is_session_id;
use wattle_agent::host::journal::{self, Journal as _, RunFilter, SharedJournal, Status};
use wattle_agent::host::machine::{Message, Role};

use super::step;
use crate::commands::session as stored;
use crate::fault::Fault;
use crate::output::{self, DIM, NAME, paint, visible};
use crate::progress::{RunView, counted};
use crate::repl::Repl;
use crate::repl::greeting::home_relative;
use crate::repl::history::exchanges;
use crate::repl::program::OpenProgram;
use crate::repl::session::Session;
use crate::setup;

/// Continues in a copy of the session. If a step is given, the copy ends after that step of the
/// last run.
pub(super) async fn fork(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let mut messages = session.conversation().await?;
    let mut at = None;
    if let Some(argument) = arguments.first() {
        let step = step(argument)?;
        messages = until(messages, step)?;
        at = Some(turn_of(session, step).await?);
    }
    let (id, store) = (journal::new_id(), &session.kept.store);
    let of = session.kept.id.clone();
    let restored = match &at {
        Some((run, turn)) => store.fork_session_at(&of, &id, messages, (run, *turn)).await,
        None => store.fork_session(&of, &id, messages).await.map(|made| made.then_some(true)),
    };
    let exists = || Fault::failed(format!("the session `{id}` already exists"));
    let restored = restored?.ok_or_else(exists)?;
    enter(session, id.clone()).await?;
    let what = match (at, restored) {
        (None, _) => "",
        (Some(_), true) => {
            ", with its files and variables after that step; the tenant's variables and memory \
             stay as they are"
        }
        (Some(_), false) => {
            ", with its files after that step; the variables stay as they are, because their \
             earlier values are no longer recorded"
        }
    };
    let note = format!("session {id}, a copy of {of}{what}");
    output::aside(&visible(&note));
    Ok(())
}

/// Returns the last run, and its turn with which a step ends.
async fn turn_of(session: &Session, step: u32) -> Result<(String, u32), Fault> {
    let unknown = || Fault::usage("this session has had no run yet");
    let run = session.last.run.clone().ok_or_else(unknown)?;
    let journal: SharedJournal = Arc::new(session.kept.store.clone());
    let opened = journal.run(&run).await?.ok_or_else(unknown)?;
    let turn = journal::step_end(&journal, &opened, step).await;
    Ok((run, turn.map_err(Fault::usage)?))
}

/// Truncates a conversation after a step of its last exchange and appends a message that names the
/// step.
fn until(mut messages: Vec<Message>, step: u32) -> Result<Vec<Message>, Fault> {
    let begin = exchanges(&messages).last().copied().unwrap_or(0);
    let has =
        |text: &str| text.starts_with("[Observation") && text.contains(&format!("(step {step})"));
    let mut results = messages
        .iter()
        .enumerate()
        .skip(begin)
        .filter(|(_, message)| message.role != Role::Assistant && has(&message.content));
    let last = results.next_back().ok_or_else(|| {
        Fault::usage(format!("the last run has no step {step}"))
            .hint("`/trace` lists the steps, `/fork` copies the whole session")
    })?;
    let end = last.0 + 1;
    messages.truncate(end);
    messages.push(Message::assistant(format!("stopped after step {step}")));
    Ok(messages)
}

/// Switches to another session in the same store. Approvals for the rest of the session end.
async fn enter(session: &mut Session, id: String) -> Result<(), Fault> {
    session.setup.forget_approvals();
    if session.is_stored() {
        session.setup.config.session.value = Some(id.clone());
    }
    session.kept.id = id;
    session.undo.clear();
    session.last = RunView::default();
    session.load_files().await?;
    session.keep_changes()
}

/// Continues in a new session.
pub(super) async fn new(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let before = session.kept.id.clone();
    enter(session, journal::new_id()).await?;
    session.open = OpenProgram::default();
    session.ran = None;
    session.spent.clear();
    session.said.clear();
    let note = format!("session {}; `/resume {before}` returns to the one before", session.kept.id);
    output::aside(&visible(&note));
    Ok(())
}

/// Clears the screen and continues in a new session.
pub(super) async fn clear(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    output::clear_screen();
    new(repl, arguments).await
}

/// Prints the model, the session, the workdir and the number of unapplied changes.
pub(super) async fn status(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let config = session.config();
    let messages = counted(session.conversation().await?.len(), "message");
    let id = &session.kept.id;
    let stored = if session.is_stored() { "" } else { ", not stored" };
    let root = home_relative(&config.root.value.display().to_string());
    let agent = config.agent.value.as_deref().unwrap_or(DEFAULT_AGENT);
    let changes = counted(session.pending(), "change") + " of files not applied";
    let store = config.store.value.as_ref().map_or("none".to_owned(), ToString::to_string);
    for (name, value) in [
        ("model", session.model_name()),
        ("agent", agent.to_owned()),
        ("session", format!("{id} ({messages}{stored})")),
        ("workdir", format!("{root} ({})", session.mode())),
        ("changes", changes),
        ("store", store),
    ] {
        output::styled(&format!("{}  {}", paint(NAME, &format!("{name:<8}")), visible(&value)))?;
    }
    Ok(())
}

/// Prints the stored sessions.
pub(super) async fn list(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    stored::list(&repl.session.kept.store, false).await
}

/// Continues a stored session.
pub(super) async fn resume(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let id = arguments.into_iter().next().unwrap_or_default();
    let sessions = session.kept.store.sessions().await?;
    if !is_session_id(&id) || sessions.iter().all(|own| own.id != id) {
        return Err(Fault::usage(format!("no session `{id}`"))
            .hint("`/sessions` lists the sessions, `--session ID` starts one"));
    }
    enter(session, id).await?;
    session.open = OpenProgram::default();
    session.introduce().await?;
    Ok(())
}

/// Prints the names of the session's and the tenant's variables, with their sizes.
pub(super) async fn vars(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let store = &repl.session.kept.store;
    let mut count = 0;
    for (prefix, state) in
        [("", store.state(&repl.session.kept.id)), ("tenant:", store.variables())]
    {
        for name in state.keys(String::new()).await? {
            let size = state.get(name.clone()).await?.map_or(0, |value| value.len());
            let shown = paint(NAME, &visible(&format!("{prefix}{name}")));
            output::styled(&format!("{shown}  {}", paint(DIM, &format!("{size} bytes"))))?;
            count += 1;
        }
    }
    if count == 0 {
        output::aside("there are no variables; `(kv.set \"name\" \"value\")` sets one");
    }
    Ok(())
}

/// Writes the conversation to a new file: as JSON if the name of the file ends with `.json`,
/// otherwise as Markdown. Keys and secrets are masked.
pub(super) async fn export(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let name = arguments.into_iter().next().unwrap_or_default();
    let path = session.config().root.value.join(&name);
    setup::mask_settings(session.config()).await?;
    let exported = session.kept.store.export(&session.kept.id).await?;
    let exported = exported.ok_or_else(|| Fault::usage("the session has no messages yet"))?;
    let exported = stored::masked(exported);
    let text = if name.ends_with(".json") {
        serde_json::to_string_pretty(&exported).unwrap_or_default() + "\n"
    } else {
        stored::as_markdown(&exported)
    };
    let written = std::fs::File::create_new(&path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|error| {
        Fault::failed(format!("failed to write `{}`: {error}", path.display()))
            .hint("name a new file in the workdir")
    })?;
    output::aside(&visible(&format!("wrote {}", path.display())));
    Ok(())
}

impl Session {
    /// Prints a summary of a resumed session: its size, its last message, and any unfinished runs.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub(in crate::repl) async fn introduce(&mut self) -> Result<(), Fault> {
        self.kept.warn_of_hidden_changes(&self.files).await?;
        self.load_files().await?;
        self.keep_changes()?;
        match self.pending() {
            0 => {}
            count => {
                let count = counted(count, "change");
                let note =
                    format!("{count} of files not applied yet; `/files` lists, `/apply` applies");
                output::aside(&note);
            }
        }
        let messages = self.conversation().await?;
        let Some(last) = exchanges(&messages).last().and_then(|at| messages.get(*at)) else {
            return Ok(());
        };
        let count = counted(messages.len(), "message");
        let said = output::width::fit(&last.content, 60);
        let note = format!("session {}: {count}, the last one: {said}", self.kept.id);
        output::aside(&visible(&note));
        let session = Some(self.kept.id.clone());
        let filter = RunFilter { session, ..RunFilter::status(Status::Open) };
        let open = self.kept.store.runs(filter).await?;
        for run in &open {
            output::note(&format!(
                "a run of this session did not end; `wattle run --resume {}` continues it",
                run.id
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_cut_after_a_step() {
        let messages = || {
            vec![
                Message::user("go"),
                Message::assistant("one"),
                Message::user("[Observation aaaaaa (step 1)] Execution result:\n1"),
                Message::assistant("two"),
                Message::user("[Observation aaaaaa (step 2)] Execution result:\n2"),
                Message::assistant("done"),
            ]
        };
        let cut = until(messages(), 1).unwrap();
        assert_eq!(cut.len(), 4);
        assert_eq!(cut.last().unwrap().content, "stopped after step 1");
        assert!(until(messages(), 3).is_err());
    }
}
