//! The states of a session that `/undo` can restore, and the exchanges of its conversation.

use serde_json::Value as Json;
use wattle_agent::host::Rewind;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::journal::{Journal as _, RunFilter, Status};
use wattle_agent::host::machine::Message;

use super::session::Session;
use crate::fault::Fault;

/// Maximum total size, in bytes, of the file changes in the states that `/undo` can restore. The
/// latest state is kept even if it is larger.
const MAX_UNDO: usize = 256 << 20;

/// A state of a session that `/undo` can restore.
pub(super) struct Undo {
    /// A description of the action that `/undo` reverts when it restores this state.
    pub(super) what: &'static str,
    /// The conversation.
    pub(super) messages: Vec<Message>,
    /// The unapplied changes of files in the format of [`Files::restore`], or `None` if there are
    /// none.
    delta: Option<String>,
    /// The hash of the changes after the action, or `None` if there were none.
    after: Option<blake3::Hash>,
    /// Number of times that changes were applied before this state.
    applied: u64,
    /// The position in the history of the session's variables.
    variables: i64,
    /// That position after the action.
    variables_after: i64,
}

impl Undo {
    /// Returns the size of the changes to files, in bytes. The texts of messages are not counted,
    /// because states share them.
    fn size(&self) -> usize {
        self.delta.as_ref().map_or(0, String::len)
    }
}

impl Session {
    /// Returns the current state. Callers take a snapshot before an action and pass it to
    /// [`push_undo`](Session::push_undo) after the action.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    pub(super) async fn snapshot(&self, what: &'static str) -> Result<Undo, Fault> {
        let messages = self.conversation().await?;
        let variables = self.position().await?;
        Ok(Undo {
            what,
            messages,
            delta: delta(&self.files),
            after: None,
            applied: self.applied,
            variables,
            variables_after: variables,
        })
    }

    /// Returns the state before the last message, from the record of its run. Returns `None` if the
    /// last recorded run of the session does not belong to the last message.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub(super) async fn recorded(&self) -> Result<Option<Undo>, Fault> {
        let mut messages = self.conversation().await?;
        let Some(begin) = exchanges(&messages).last().copied() else { return Ok(None) };
        let (store, session) = (&self.kept.store, Some(self.kept.id.clone()));
        let newest = RunFilter { session, limit: Some(1), ..RunFilter::default() };
        let runs = store.runs(newest).await?;
        let said = messages.get(begin).map(|message| message.content.as_str());
        let Some(run) = runs
            .first()
            .filter(|run| run.status == Status::Ended && Some(run.start.message.as_str()) == said)
        else {
            return Ok(None);
        };
        let Some((last, _)) = store.last_turn(&run.id).await? else {
            return Ok(None);
        };
        let position = async |turn| store.turn_position(&run.id, turn).await;
        let Some((variables, variables_after)) = position(0).await?.zip(position(last).await?)
        else {
            return Ok(None);
        };
        let (before, after) = (self.setup.files()?, self.setup.files()?);
        if before.is_overlay() {
            for (turn, changed) in store.files_of_tree(&run.id).await? {
                after.restore(&changed).map_err(Fault::failed)?;
                if turn == 0 {
                    before.restore(&changed).map_err(Fault::failed)?;
                }
            }
        }
        messages.truncate(begin);
        Ok(Some(Undo {
            what: "the last message",
            messages,
            delta: delta(&before),
            after: fingerprint(&after),
            applied: self.applied,
            variables,
            variables_after,
        }))
    }

    /// Saves the state before an action, so that `/undo` restores it next. Drops the oldest states
    /// if the total size of all states exceeds [`MAX_UNDO`].
    ///
    /// # Errors
    /// If the session cannot be read.
    pub(super) async fn push_undo(&mut self, mut before: Undo) -> Result<(), Fault> {
        before.after = fingerprint(&self.files);
        before.variables_after = self.position().await?;
        self.undo.push(before);
        let mut size: usize = self.undo.iter().map(Undo::size).sum();
        while size > MAX_UNDO && self.undo.len() > 1 {
            size -= self.undo.remove(0).size();
        }
        Ok(())
    }

    async fn position(&self) -> Result<i64, Fault> {
        Ok(self.kept.store.state_position(&self.kept.id).await?)
    }

    /// Returns the session's variables to the state before an action. Changes nothing if they have
    /// changed since the action.
    ///
    /// # Errors
    /// If the session cannot be read or written.
    pub(super) async fn restore_variables(&mut self, state: &Undo) -> Result<Rewind, Fault> {
        let _held = self.kept.lock().await?;
        let (store, id) = (&self.kept.store, &self.kept.id);
        let rewound = store.rewind_state(id, state.variables, state.variables_after).await?;
        let now = self.position().await?;
        // The action before this one left the variables as they are now.
        if let Some(earlier) = self.undo.last_mut()
            && rewound == Rewind::Done
            && earlier.variables_after == state.variables
        {
            earlier.variables_after = now;
        }
        Ok(rewound)
    }

    /// Returns the conversation.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    pub(super) async fn conversation(&self) -> Result<Vec<Message>, Fault> {
        Ok(self.kept.store.conversation(&self.kept.id).await?)
    }

    /// Replaces the conversation.
    ///
    /// # Errors
    /// If the conversation cannot be written.
    pub(super) async fn replace(&self, messages: Vec<Message>) -> Result<(), Fault> {
        let _held = self.kept.lock().await?;
        Ok(self.kept.store.replace_conversation(&self.kept.id, messages).await?)
    }

    /// Restores the files of the state before an action. Changes nothing and returns false if the
    /// files have changed since the action, for example because the user ran a program that wrote a
    /// file, or because changes were dropped or applied.
    ///
    /// # Errors
    /// If the session cannot be read or written.
    pub(super) async fn restore_files(&mut self, state: &Undo) -> Result<bool, Fault> {
        if state.applied != self.applied || !self.files.is_overlay() {
            return Ok(false);
        }
        self.edit_changes(|files| {
            if state.after != fingerprint(files) {
                return Ok(false);
            }
            let restored = files.discard(".").and_then(|()| match &state.delta {
                Some(delta) => files.restore(delta),
                None => Ok(()),
            });
            restored.map(|()| true).map_err(Fault::failed)
        })
        .await
    }
}

/// Returns all changes to the files in the format of [`Files::restore`], or `None` if there are
/// none. The store must contain all of them, because they are unmarked.
fn delta(files: &Files) -> Option<String> {
    files.mark_all_changed();
    files.take_delta()
}

/// Returns the hash of all changes to the files, or `None` if there are none.
fn fingerprint(files: &Files) -> Option<blake3::Hash> {
    if files.used() == 0 {
        return None;
    }
    let mut changes: Json = serde_json::from_str(&delta(files)?).ok()?;
    // The time of the overlay's top folder is that at which the process opened it.
    if let Some(opened) = changes.pointer_mut("/0/1/modified") {
        opened.take();
    }
    Some(blake3::hash(changes.to_string().as_bytes()))
}

/// Returns the indexes of the messages that the user wrote, each of which begins an exchange. The
/// other messages with the user's role are observations, or were added by the host.
pub(super) fn exchanges(messages: &[Message]) -> Vec<usize> {
    let by_user = messages.iter().enumerate().filter(|(_, message)| message.begins_exchange());
    by_user.map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_and_what_the_host_adds_do_not_begin_an_exchange() {
        let messages = [
            Message::user("one"),
            Message::assistant("ToolCall::Wat(…)"),
            Message::user("[Observation aaaaaa (step 1)] Execution result:\n1"),
            Message::assistant("done"),
            Message::user("two"),
            Message { contributed: true, ..Message::user("It is noon.") },
            Message { recalled: true, ..Message::user("The house is blue.") },
            Message::assistant("yes"),
        ];
        assert_eq!(exchanges(&messages), [0, 4]);
    }
}
