//! Runs the program that recalls items from memory.

use std::time::Duration;

use wattle_machine::{Call, Execution};

use super::{CallState, Performer};
use crate::trace::CallOutcome;

/// Maximum duration of a program that recalls items, unless it sets its own.
const RECALL_TIME: Duration = Duration::from_secs(10);

impl Performer<'_> {
    /// Runs the program that recalls items. Its failure is not the run's: a program that needs an
    /// approval is refused, so that no run waits for it.
    pub(super) async fn recall(&self, step: u32, call: &Call) -> Execution {
        let refused = match self.call((step, 0), call, RECALL_TIME).await {
            Ok(CallState::Done(execution)) => return *execution,
            Ok(CallState::Pending(waiting)) => {
                let asked: Vec<String> = waiting.into_iter().map(|one| one.question).collect();
                format!(
                    "it needs an approval, which no recall waits for ({}); allow it with the \
                     setting `allow`",
                    asked.join("; ")
                )
            }
            Err(broken) => broken,
        };
        let execution = Execution::Refused { reason: refused };
        self.trace.write(step, call, &CallOutcome::of(&execution), 0);
        execution
    }
}
