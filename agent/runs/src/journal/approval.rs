//! Pending approvals and the answers to them. A pending approval is a question that a run asks a
//! person.

use serde::{Deserialize, Serialize};
use wattle_capability::policy::Answer;
use wattle_rt::tape::{QUESTION, RecordedValue};
use wattle_store::StoreError;

use super::{RecordedCall, RecordedEffect, ResumeError, SharedJournal};

/// A call that a person must approve or deny.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The id of the call: the number of the step and the number of the call within the step, such
    /// as `2.1`. For a call of a child run, the id begins with the child run's id and `/`.
    pub call: String,
    /// A description of what the program would do.
    pub question: String,
}

/// A person's answer to a pending approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Denied. The string contains the reason that the model reads, and may be empty. The program
    /// does not run.
    Denied(String),
    /// Approved for this call only.
    Once,
    /// Approved for the rest of the session.
    Session,
}

impl Approval {
    /// Returns [`Approval::Once`] if `yes` is true, otherwise a denial without a reason.
    #[must_use]
    pub fn once(yes: bool) -> Approval {
        if yes { Approval::Once } else { Approval::Denied(String::new()) }
    }

    /// Returns the answer in the form that a journal stores.
    fn word(&self) -> String {
        let answer = match self {
            Approval::Denied(reason) => Answer::No(reason.clone()),
            Approval::Once => Answer::Yes,
            Approval::Session => Answer::Always,
        };
        answer.word().unwrap_or_default()
    }
}

/// Returns the pending approvals of a run.
///
/// # Errors
/// If the journal cannot be read.
pub async fn waiting(
    journal: &SharedJournal,
    run: &str,
) -> Result<Vec<PendingApproval>, StoreError> {
    Ok(open_questions(journal, run).await?.into_iter().map(|(waiting, _)| waiting).collect())
}

/// Records answers to pending approvals. Returns the approvals that are still pending.
pub(crate) async fn record_answers(
    journal: &SharedJournal,
    run: &str,
    answers: &[(String, Approval)],
) -> Result<Vec<PendingApproval>, ResumeError> {
    let open = open_questions(journal, run).await?;
    if let Some((call, _)) =
        answers.iter().find(|(call, _)| !open.iter().any(|(waiting, _)| waiting.call == *call))
    {
        return Err(ResumeError::NotAsked(call.clone()));
    }
    let (mut answered, mut pending) = (Vec::new(), Vec::new());
    for (waiting, call) in open {
        match answers.iter().find(|(asked, _)| *asked == waiting.call) {
            Some((_, answer)) => {
                let word = answer.word().into_bytes();
                answered
                    .push(RecordedCall { result: Some(Ok(RecordedValue::Bytes(word))), ..call });
            }
            None => pending.push(waiting),
        }
    }
    if !answered.is_empty() {
        // A lost answer would be asked for again.
        journal.durable_calls(run, answered).await?;
    }
    Ok(pending)
}

async fn open_questions(
    journal: &SharedJournal,
    run: &str,
) -> Result<Vec<(PendingApproval, RecordedCall)>, StoreError> {
    let Some((at, last)) = journal.last_turn(run).await? else { return Ok(Vec::new()) };
    let step = last.effects.iter().find_map(|effect| {
        if let RecordedEffect::Execute { step, .. } = effect { Some(*step) } else { None }
    });
    let Some(step) = step else { return Ok(Vec::new()) };
    let calls = journal.calls_of(run, at).await?.into_iter();
    let open = calls.filter(|call| call.id.function == QUESTION && call.result.is_none());
    let waiting = |call: &RecordedCall| PendingApproval {
        call: format!("{step}.{}", call.program.saturating_add(1)),
        question: call.id.args.clone(),
    };
    Ok(open.map(|call| (waiting(&call), call)).collect())
}
