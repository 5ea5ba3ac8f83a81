//! Requests to a model.

use wattle_machine::{FunctionChoice, Message, ThinkingEffort};

use super::{FunctionTool, Timeouts};
use crate::output::OutputSchema;

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The functions that the model may call instead of answering; usually none.
    pub functions: &'a [FunctionTool],
    /// The setting that allows, requires or forbids function calls. It has no effect without
    /// functions.
    pub function_choice: FunctionChoice,
    /// The sampling temperature, from 0 to 2.
    pub temperature: f32,
    /// Maximum length of the answer, in tokens.
    pub max_tokens: u32,
    /// The model's reasoning effort, or `None` for the model's default. It has no effect on
    /// endpoints without a field for it.
    pub thinking_effort: Option<ThinkingEffort>,
    /// The schema to which the provider constrains the answer, if the provider supports this. The
    /// caller still validates the answer.
    pub output: Option<&'a OutputSchema>,
    /// The deadline for each attempt and the time of the retries. Each value applies only if it is
    /// lower than the model's own limit.
    pub timeouts: Option<Timeouts>,
}

impl<'a> ModelRequest<'a> {
    /// Creates a request without functions, with temperature 0.3 and at most 4,096 tokens.
    pub fn new(messages: &'a [Message]) -> Self {
        Self {
            messages,
            functions: &[],
            function_choice: FunctionChoice::Auto,
            temperature: 0.3,
            max_tokens: 4096,
            thinking_effort: None,
            output: None,
            timeouts: None,
        }
    }
}
