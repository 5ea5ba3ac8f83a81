//! `wattle session`: manages stored sessions.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::json;
use wattle_agent::host::journal::{self, Journal as _};
use wattle_agent::host::machine::{Message, Role};
use wattle_agent::host::rt::truncate;
use wattle_agent::host::service::release_children;
use wattle_agent::host::{
    ExportedSession, SESSION_ID, SessionLine, TenantStore, is_session_id, now_ms,
};

use crate::args::SessionCommand;
use crate::config::Layer;
use crate::fault::Fault;
use crate::output::{self, visible};
use crate::progress::{counted, size};
use crate::{input, setup, trust};

/// Maximum length of the beginning of a message in a list, in characters.
const SHOWN: usize = 60;

/// Runs a `session` command.
pub(crate) async fn session(command: SessionCommand, flags: &[Layer]) -> Result<(), Fault> {
    let config = match command {
        SessionCommand::List { .. } | SessionCommand::Show { .. } => {
            trust::gather_with_warnings(flags)?
        }
        _ => trust::gather(flags)?,
    };
    if let SessionCommand::Export { .. } | SessionCommand::Import { .. } = command {
        setup::mask_settings(&config).await?;
    }
    let store = setup::store(&config)?;
    match of_last(command, &store).await? {
        SessionCommand::List { json } => list(&store, json).await,
        SessionCommand::Show { id, json } => show(&store, &id, json).await,
        // It is a run of the REPL.
        SessionCommand::Resume { .. } => Ok(()),
        SessionCommand::Fork { id, new, json } => {
            let session = whole(&store, &id).await?;
            let new = new.unwrap_or_else(journal::new_id);
            valid(&new)?;
            let is_new = store.fork_session(&id, &new, session.messages).await?;
            created(is_new, &new, json)
        }
        SessionCommand::Export { id, markdown } => {
            let session = masked(whole(&store, &id).await?);
            if markdown { output::text(&as_markdown(&session)) } else { output::json(&session) }
        }
        SessionCommand::Import { file, id, json } => {
            let file_name = file.display();
            let session: ExportedSession =
                serde_json::from_str(&input::text(&file)?).map_err(|error| {
                    Fault::usage(format!("`{file_name}` is not an exported session: {error}"))
                })?;
            if session.wattle_session != 1 {
                let version = session.wattle_session;
                let message =
                    format!("the version of `{file_name}` is {version}, but only 1 is supported");
                return Err(Fault::usage(message).hint("use a newer version of wattle"));
            }
            let id = id.unwrap_or_else(|| session.id.clone());
            valid(&id)?;
            created(store.import(&id, session).await?, &id, json)
        }
        SessionCommand::Release { run: Some(run), .. } => release(&store, &run).await,
        SessionCommand::Release { run: None, .. } => {
            output::text(&store.release_all().await?.join("\n"))
        }
        SessionCommand::Rm { ids } => {
            for id in ids {
                if !store.remove(&id).await? {
                    return Err(none(&id));
                }
            }
            Ok(())
        }
    }
}

/// Returns the command with the id of the session that was used last in place of `last`.
async fn of_last(
    mut command: SessionCommand,
    store: &TenantStore,
) -> Result<SessionCommand, Fault> {
    let ids = match &mut command {
        SessionCommand::Show { id, .. }
        | SessionCommand::Fork { id, .. }
        | SessionCommand::Export { id, .. } => std::slice::from_mut(id),
        SessionCommand::Rm { ids } => ids.as_mut_slice(),
        _ => &mut [],
    };
    for id in ids {
        *id = setup::session_id(store, std::mem::take(id)).await?;
    }
    Ok(command)
}

/// Prints the stored sessions.
///
/// # Errors
/// If the store cannot be read, or stdout cannot be written.
pub(crate) async fn list(store: &TenantStore, json: bool) -> Result<(), Fault> {
    let sessions = store.session_page(None, u32::MAX).await?;
    if json {
        let listed = |(session, said): &(SessionLine, String)| {
            let mut line = json!(session);
            line.as_object_mut()
                .map(|line| line.insert("title".to_owned(), first_line(said).into()));
            line
        };
        return output::json(&sessions.iter().map(listed).collect::<Vec<_>>());
    }
    if sessions.is_empty() {
        output::note("the store has no sessions; `--session ID` starts one");
    }
    let line = |(session, said): &(SessionLine, String)| {
        let messages = counted(session.messages, "message");
        let SessionLine { id, bytes, used, .. } = session;
        let (used, bytes) = (format!("{} ago", ago(*used)), size(*bytes));
        let title = visible(&first_line(said));
        let line = format!("{id:<26}  {used:<11} {messages:<12} {bytes:>8}  {title}");
        format!("{}\n", line.trim_end())
    };
    output::data(sessions.iter().map(line).collect::<String>().as_bytes())
}

async fn show(store: &TenantStore, id: &str, json: bool) -> Result<(), Fault> {
    let session = whole(store, id).await?;
    if json {
        return output::json(&session.messages);
    }
    output::data(spoken(&session.messages).as_bytes())
}

/// Renders the messages of a conversation, each after the name of its role.
pub(crate) fn spoken(messages: &[Message]) -> String {
    let line = |message: &Message| {
        let who = if message.role == Role::Assistant { "assistant" } else { "user" };
        format!("{who}: {}\n", visible(message.content.trim_end()))
    };
    messages.iter().map(line).collect()
}

/// Returns the session with this id, in its exported form.
async fn whole(store: &TenantStore, id: &str) -> Result<ExportedSession, Fault> {
    store.export(id).await?.ok_or_else(|| none(id))
}

/// Masks keys and secrets in the messages of a session, because an exported session can be shared.
pub(crate) fn masked(session: ExportedSession) -> ExportedSession {
    let (mask, mut changed) = (output::mask(), 0);
    let clean = |message: Message| {
        let content = mask.text(&message.content);
        changed += usize::from(content != message.content);
        Message { content: content.into(), ..message }
    };
    let messages = session.messages.into_iter().map(clean).collect();
    if changed > 0 {
        let those = counted(changed, "message");
        output::warn(&format!("keys and secrets are masked in {those} of the exported session"));
    }
    ExportedSession { messages, ..session }
}

/// Renders a session as Markdown, with a heading for each message.
pub(crate) fn as_markdown(session: &ExportedSession) -> String {
    let mut text = format!("# Session {}\n", session.id);
    for message in &session.messages {
        let who = match message.role {
            Role::Assistant => "Model",
            _ if message.content.starts_with("[Observation") => "Observation",
            _ => "User",
        };
        _ = writeln!(text, "\n## {who}\n\n{}", message.content.trim());
    }
    text
}

fn none(id: &str) -> Fault {
    Fault::usage(format!("no session `{id}`")).hint("`wattle session list` lists the sessions")
}

/// Checks the id of a new session.
fn valid(id: &str) -> Result<(), Fault> {
    if is_session_id(id) {
        Ok(())
    } else {
        Err(Fault::usage(format!("a session id is {SESSION_ID}, not {id:?}")))
    }
}

/// Prints the id of a new session. Fails if it was not created, because the id is in use.
fn created(is_new: bool, id: &str, json: bool) -> Result<(), Fault> {
    match (is_new, json) {
        (false, _) => {
            Err(Fault::usage(format!("the session `{id}` already exists"))
                .hint("choose another id"))
        }
        (true, true) => output::json(&json!({"id": id})),
        (true, false) => output::text(id),
    }
}

/// Releases a run and its child runs if they were parked for repeatedly crashing their process.
/// Released runs can be driven again.
async fn release(store: &TenantStore, run: &str) -> Result<(), Fault> {
    let is_below = release_children(store, run).await?;
    if store.release(run).await? || is_below {
        return Ok(());
    }
    let message = format!("no run `{run}` is parked because it ended its process");
    Err(Fault::usage(message).hint("`wattle runs` shows which runs are parked, and why"))
}

/// Returns the beginning of a message, for a list.
pub(crate) fn first_line(message: &str) -> Cow<'_, str> {
    truncate(message.trim().lines().next().unwrap_or_default(), SHOWN)
}

/// Formats the time since `then`, a Unix time in milliseconds, in the largest suitable unit.
pub(crate) fn ago(then: u64) -> String {
    let seconds = now_ms().saturating_sub(then) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
