//! The end of a run that cannot be driven.

use wattle_machine::{Effect, Event, Input, State, Usage, step};
use wattle_store::StoreError;
use wattle_store::journal::EffectRecorder;

use super::{RunRecord, SharedJournal, Turn};
use crate::report::Report;
use crate::sink::{Sink, Stamp, events_of};

/// Ends a run without driving it and emits its last event. `input` says that the run is cancelled or
/// has failed. The run's turns are not read,
/// because reading them may fail or terminate the process. Therefore the report contains neither
/// steps nor usage. `recorded` is the sequence number of the run's latest event. The caller must
/// call [`end`](super::end) with the report.
pub(crate) async fn abort(
    journal: &SharedJournal,
    run: &RunRecord,
    input: Input,
    (recorded, sink): (u64, &dyn Sink),
) -> Result<Report, StoreError> {
    let message = match &input {
        Input::Cancel { reason } => format!("cancelled: {reason}"),
        Input::Failed(reason) => reason.clone(),
        _ => return Err(StoreError::unreadable("the run has no reason to end")),
    };
    let (_, effects) = step(State::new(run.start.setup.clone()), input.clone());
    let last = journal.events(&run.id, recorded.saturating_sub(1), 1).await?;
    let has_last =
        last.iter().any(|last| matches!(last.event, Event::Response { .. } | Event::Error { .. }));
    // An earlier attempt may have failed after it recorded the last event.
    if !has_last {
        let (seq, parent) = (recorded.saturating_add(1), run.start.parent.as_ref());
        let stamp = Stamp::from(&run.id, sink, seq);
        let stamp = stamp.under(parent.map_or(&run.id, |parent| &parent.root));
        let events = stamp.number(events_of(&effects));
        let turn = Turn {
            spent: Usage::default(),
            input,
            effects: EffectRecorder::default().record(&effects),
            seq,
            elapsed_ms: 0,
            files: None,
        };
        journal.turn(&run.id, turn, Vec::new(), events.clone()).await?;
        stamp.emit(&events);
    }
    let ending = effects.into_iter().find_map(|effect| match effect {
        Effect::Finish(ending) => Some(ending),
        _ => None,
    });
    let failed = Report::failed(run.id.clone(), message);
    let ending = ending.unwrap_or_else(|| failed.ending.clone());
    Ok(Report { ending, ..failed })
}
