//! Another run from the same beginning.

use wattle_machine::{Effect, Input, Message, Role, State, Usage, step};

use super::turn::Shortener;
use super::{Call, Opened, Opening, SharedJournal, Status, Turn};
use crate::StoreError;

/// Why a run cannot be forked there.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// It did not come that far.
    #[error("the run has {has} steps, and cannot be forked at step {asked}")]
    TooFar {
        /// The step that was asked for.
        asked: u32,
        /// How many there are.
        has: u32,
    },
    /// The journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a run that has in common with another one all that happened before the end of a step (0: before the first one), files included, and
/// stands open from there. With a message it begins anew with that message, behind what was said; without one the model is asked once more
/// for the next step.
///
/// # Errors
/// Where the other run did not come that far.
pub async fn fork(
    journal: &SharedJournal,
    of: &Opened,
    at: u32,
    message: Option<String>,
    id: String,
) -> Result<(), ForkError> {
    let turns = journal.turns(&of.id).await?;
    let mut state = State::new(of.opening.setup.clone());
    let mut kept: Vec<Turn> = Vec::new();
    let mut reached = false;
    for turn in turns {
        let effects;
        (state, effects) = turn.step(state);
        kept.push(turn);
        reached = state.steps() == at && effects.iter().any(|effect| matches!(effect, Effect::Ask(_)));
        if reached {
            break;
        }
    }
    if !reached {
        return Err(ForkError::TooFar { asked: at, has: state.steps() });
    }
    let forked = Some((of.id.clone(), at));
    let now = crate::now_ms();
    let begun = |opening: Opening| Opened {
        id: id.clone(),
        session: of.session.clone(),
        status: Status::Open,
        made: now,
        used: now,
        attempts: 0,
        reason: None,
        opening,
    };
    let Some(message) = message else {
        journal.open(begun(Opening { forked, ..of.opening.clone() })).await?;
        for (number, turn) in (0..).zip(kept) {
            let calls: Vec<Call> = journal.calls_of(&of.id, number).await?;
            journal.calls(&id, calls).await?;
            journal.turn(&id, turn).await?;
        }
        return Ok(());
    };
    let opening = anew(&of.opening, state.conversation(), message);
    let (_, effects) = step(State::new(opening.setup.clone()), Input::Begin { message: opening.message.clone() });
    let first = Turn {
        spent: Usage::default(),
        input: Input::Begin { message: opening.message.clone() },
        done: Shortener::default().shorten(&effects),
        seq: 1,
        elapsed_ms: 0,
        files: joined(kept.into_iter().filter_map(|turn| turn.files)),
    };
    journal.open(begun(Opening { forked, ..opening })).await?;
    Ok(journal.turn(&id, first).await?)
}

/// A beginning whose history is a conversation so far. Where a user spoke last, the message goes on from there.
fn anew(of: &Opening, conversation: &[Message], message: String) -> Opening {
    let mut history: Vec<Message> = conversation.iter().filter(|said| said.role != Role::System).cloned().collect();
    let message = match history.pop_if(|last| last.role == Role::User) {
        Some(last) => format!("{}\n\n{message}", last.content),
        None => message,
    };
    let mut opening = Opening { message, ..of.clone() };
    opening.setup.history = history;
    opening.setup.nonce = crate::driver::nonce();
    opening
}

/// Several changes of files as one.
fn joined(changes: impl Iterator<Item = String>) -> Option<String> {
    let inner: Vec<String> = changes
        .filter_map(|one| Some(one.strip_prefix('[')?.strip_suffix(']')?.to_owned()))
        .filter(|inner| !inner.is_empty())
        .collect();
    (!inner.is_empty()).then(|| format!("[{}]", inner.join(",")))
}
