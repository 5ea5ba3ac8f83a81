//! The result of a run.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use wattle_machine::{Artifact, Ending, Message, Usage};
use wattle_model::output::OutputError;
use wattle_store::ledger::FinalSeal;

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// The run's id. Ids sort by creation time and are unguessable.
    pub run_id: String,
    /// The ending of the run. The text of the ending is the result.
    pub ending: Ending,
    /// The messages of the run that the session keeps. They begin with the user's message and end
    /// with an answer. If a run was stopped early, the last message says how the run ended. The
    /// list is empty if the run failed, so that the same message can be sent again. It is also
    /// empty if the message was blocked, so that no later run sends it to the model.
    pub turns: Vec<Message>,
    /// Number of steps in which calls were executed.
    pub steps: u32,
    /// Model usage of the run.
    pub usage: Usage,
    /// The data that programs stored for the application.
    pub artifacts: Vec<Artifact>,
    /// The run's final seal, or `None` if its trace is not sealed.
    pub sealed: Option<FinalSeal>,
}

impl Report {
    /// Returns the value of the answer, if the run has a required output and the answer is valid.
    pub fn data(&self) -> Option<&Json> {
        self.ending.data()
    }

    /// Converts the value of the answer to a type.
    ///
    /// # Errors
    /// If the run has no valid value, or the value does not match the type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        let data = self.data().ok_or_else(|| OutputError::missing(&self.ending))?;
        T::deserialize(data).map_err(|why| OutputError::unfit(&why))
    }

    /// Creates the report of a run that failed outside its state machine.
    pub fn failed(run_id: String, message: String) -> Report {
        Report {
            run_id,
            ending: Ending::Failed { message: format!("error: {message}") },
            turns: Vec::new(),
            steps: 0,
            usage: Usage::default(),
            artifacts: Vec::new(),
            sealed: None,
        }
    }
}
