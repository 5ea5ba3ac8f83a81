//! The structured output of one run: the validation of answers, and the schema for requests.

use wattle_machine::{Ask, Dialect, Input, OutputContract, Purpose};
use wattle_model::FunctionChoice;
use wattle_model::output::{OutputSchema, OutputSettings};

/// The required output of a run, with a compiled schema.
pub(crate) enum RunOutput {
    /// The run has no required output.
    None,
    /// The answer must match this schema.
    Schema {
        /// The compiled schema.
        schema: OutputSchema,
        /// If true, the model's provider can constrain answers to the schema.
        native: bool,
    },
    /// The recorded schema cannot be compiled. The string is the reason.
    Unusable(String),
}

impl RunOutput {
    /// Returns the output that a contract requires. Compiles its schema, unless it is one of those
    /// of `known`, which are compiled.
    pub(crate) fn of<'a>(
        contract: &OutputContract,
        known: impl IntoIterator<Item = &'a OutputSettings>,
    ) -> RunOutput {
        let mut known = known.into_iter().map(|output| &output.schema);
        let same = known
            .find(|schema| schema.name() == contract.name && *schema.schema() == contract.schema);
        let compiled = match same {
            Some(schema) => Ok(schema.clone()),
            None => OutputSchema::new(contract.name.as_str(), contract.schema.clone()),
        };
        match compiled {
            Ok(schema) => RunOutput::Schema { schema, native: contract.native },
            Err(why) => RunOutput::Unusable(why.to_string()),
        }
    }

    /// Returns true if the run has a required output.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, RunOutput::None)
    }

    /// Validates an answer on a separate thread, because validation against a large schema can be
    /// slow.
    pub(crate) async fn validate(&self, text: &str) -> Input {
        let schema = match self {
            RunOutput::Schema { schema, .. } => schema.clone(),
            RunOutput::Unusable(why) => return Input::Failed(why.clone()),
            RunOutput::None => {
                return Input::Failed("the run has no schema; this is a bug".to_owned());
            }
        };
        let text = text.to_owned();
        match tokio::task::spawn_blocking(move || schema.validate(&text)).await {
            Ok(validated) => Input::Validated(validated),
            Err(why) => Input::Failed(format!("failed to validate the answer: {why}")),
        }
    }

    /// Returns the schema to send with a request. Returns `None` if the run has no schema, if the
    /// provider cannot enforce it, if the request allows functions, or if the answer must contain a
    /// call.
    pub(crate) fn constraint(&self, ask: &Ask, choice: FunctionChoice) -> Option<&OutputSchema> {
        let must_answer = match ask.purpose {
            Purpose::Conclude | Purpose::Amend => true,
            Purpose::Act | Purpose::Repair => {
                ask.dialect == Dialect::Native && choice == FunctionChoice::None
            }
        };
        match self {
            RunOutput::Schema { schema, native: true } if must_answer => Some(schema),
            _ => None,
        }
    }
}
