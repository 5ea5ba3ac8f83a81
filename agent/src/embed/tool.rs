//! Tools: Rust closures that programs and models call.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio_util::task::AbortOnDropHandle;
use wattle_capability::PortFuture;
use wattle_capability::tool::ToolBox;
use wattle_catalog::{Entry, Origin};
use wattle_rt::{Code, Failure, truncate};

use super::middleware::RunState;
use super::run::AgentRun;
use crate::tool_program::ToolProgram;

/// Default maximum duration of a call.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a tool's error, in characters.
const MAX_ERROR: usize = 4_000;

/// A function of the application that programs and models call.
///
/// Its input is a struct whose fields are the arguments. A model reads their names, descriptions
/// and types. Arguments that do not match the schema never reach the function; the error lists the
/// violations for the model. A string result is returned unchanged; any other result is converted
/// to JSON.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use wattle_agent::{Tool, ToolContext};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct AddUser {
///     /// The full name.
///     name: String,
///     /// The age in years.
///     age: Option<u8>,
/// }
///
/// let tool = Tool::new("add_user", "Adds a user", |user: AddUser, _: ToolContext| async move {
///     Ok(format!("added {}", user.name))
/// });
/// assert_eq!(tool.name(), "add_user");
/// ```
#[derive(Clone)]
pub struct Tool(Arc<ToolParts>);

#[derive(Clone)]
struct ToolParts {
    name: String,
    description: String,
    schema: Arc<Json>,
    timeout: Duration,
    function: Arc<ToolFunction>,
}

type ToolFunction =
    dyn Fn(Json, ToolContext) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync;

impl Tool {
    /// Creates a tool whose arguments are the fields of `I`.
    #[must_use]
    pub fn new<I, O, F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Tool
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + 'static,
        F: Fn(I, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let schema = schemars::schema_for!(I).to_value();
        let function = Arc::new(function);
        Tool::with_schema(name, description, schema, move |arguments, context| {
            let function = Arc::clone(&function);
            async move {
                let input = serde_json::from_value(arguments).map_err(|error| {
                    ToolError::new(format!("the arguments do not fit the tool: {error}"))
                })?;
                function(input, context).await
            }
        })
    }

    /// Creates a tool with a JSON Schema for its arguments. The schema must describe an object.
    #[must_use]
    pub fn with_schema<O, F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Json,
        function: F,
    ) -> Tool
    where
        O: Serialize + 'static,
        F: Fn(Json, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let function = Arc::new(move |arguments, context| {
            let result = function(arguments, context);
            async move { text_of(&result.await?) }.boxed()
        });
        Tool(Arc::new(ToolParts {
            name: name.into(),
            description: description.into(),
            schema: Arc::new(schema),
            timeout: TIMEOUT,
            function,
        }))
    }

    /// Sets the maximum duration of a call. The default is 60 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Tool {
        Tool(Arc::new(ToolParts { timeout, ..self.0.as_ref().clone() }))
    }

    /// Returns the name by which programs and the model call the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the description that the model reads.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Returns the JSON Schema of the arguments.
    #[must_use]
    pub fn schema(&self) -> &Json {
        &self.0.schema
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Converts a result to a string. A string is returned unchanged; any other value is converted to
/// JSON.
fn text_of(output: &impl Serialize) -> Result<String, ToolError> {
    match serde_json::to_value(output) {
        Ok(Json::String(text)) => Ok(text),
        Ok(value) => Ok(value.to_string()),
        Err(error) => Err(ToolError::new(format!("the result cannot be written as JSON: {error}"))),
    }
}

/// The context of a tool call.
#[derive(Clone)]
pub struct ToolContext(Arc<AgentRun>);

impl ToolContext {
    /// Returns the state that the run's middleware and tools share. It includes the run's ids, its
    /// context and its cancellation handle.
    #[must_use]
    pub fn run(&self) -> &RunState {
        &self.0.state
    }
}

/// An error that tells the model why a tool failed. Any error type can be converted to it.
pub struct ToolError(String);

impl ToolError {
    /// Creates an error with a reason for the model.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> ToolError {
        ToolError(reason.into())
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause.filter(|_| text.len() < MAX_ERROR) {
            _ = write!(text, ": {error}");
            cause = error.source();
        }
        ToolError(text)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.0).finish()
    }
}

/// A tool with its program.
pub(super) struct CompiledTool {
    pub(super) tool: Tool,
    program: ToolProgram,
}

impl CompiledTool {
    /// Checks the name and compiles the schema.
    ///
    /// # Errors
    /// If the tool is invalid. The error names the rule that the tool violates.
    pub(super) fn of(tool: &Tool) -> Result<CompiledTool, String> {
        let name = tool.name().parse().map_err(|error| format!("{error}"))?;
        Ok(CompiledTool {
            tool: tool.clone(),
            program: ToolProgram::new(name, tool.name(), tool.schema())?,
        })
    }

    /// Returns the program through which a model calls the tool.
    pub(super) fn program(&self, agent: &str) -> Entry {
        self.program.entry(Origin::Agent(agent.to_owned()), self.tool.description(), None)
    }
}

/// The tools of one run.
pub(super) struct RunTools(pub(super) Arc<AgentRun>);

impl RunTools {
    async fn run(&self, name: String, arguments: String) -> Result<String, Failure> {
        let tools = &self.0.agent.tools;
        let Some(tool) = tools.iter().find(|tool| tool.tool.name() == name) else {
            let known: Vec<&str> = tools.iter().map(|tool| tool.tool.name()).collect();
            let reason = format!("there is no tool `{name}`; there is `{}`", known.join("`, `"));
            return Err(Failure::new(Code::ENOENT, reason));
        };
        let arguments = tool.program.read(&arguments)?;
        let parts = Arc::clone(&tool.tool.0);
        let (timeout, context) = (parts.timeout, ToolContext(Arc::clone(&self.0)));
        // A program's stack is small, so the function runs in a separate task. If it panics, only
        // this call fails.
        let call = tokio::spawn(async move { (parts.function)(arguments, context).await });
        let call = AbortOnDropHandle::new(call);
        match tokio::time::timeout(timeout, call).await {
            Ok(Ok(Ok(text))) => Ok(text),
            Ok(Ok(Err(ToolError(reason)))) => {
                let reason = truncate(&reason, MAX_ERROR);
                Err(Failure::new(Code::EREMOTE, format!("the tool `{name}` failed: {reason}")))
            }
            Ok(Err(stopped)) => {
                let run = self.0.state.run_id();
                tracing::error!(run, tool = name, %stopped, "a tool of the application panicked");
                let reason =
                    format!("the tool `{name}` failed; the application's log has the reason");
                Err(Failure::new(Code::EREMOTE, reason))
            }
            Err(_) => {
                let reason =
                    format!("the tool `{name}` did not return within {} ms", timeout.as_millis());
                Err(Failure::new(Code::ETIME, reason))
            }
        }
    }
}

impl ToolBox for RunTools {
    fn call(&self, name: String, arguments: String) -> PortFuture<'_, String> {
        Box::pin(self.run(name, arguments))
    }
}
