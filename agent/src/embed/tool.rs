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
use wattle_catalog::{Entry, Meta, Origin};
use wattle_rt::{Code, Failure, truncate};

use super::middleware::RunState;
use crate::tool_program::{ToolProgram, result_shape};

/// Default maximum duration of a call.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a tool's error, in characters.
const MAX_ERROR: usize = 4_000;

/// A function of the application that programs and models call.
///
/// Its input is a struct whose fields are the arguments. A model reads their names, descriptions
/// and types. Arguments that do not match the schema never reach the function; the error lists the
/// violations for the model. A string result is returned unchanged; any other result is converted
/// to JSON. Programs read the result of a tool with a [`result`](Tool::result) schema as a value.
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
    /// The schema of the results, if they are values.
    result: Option<Arc<Json>>,
    timeout: Duration,
    is_exclusive: bool,
    is_silent: bool,
    function: Arc<ToolFunction>,
}

type ToolFunction =
    dyn Fn(Json, ToolContext) -> BoxFuture<'static, Result<Json, ToolError>> + Send + Sync;

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
            async move { json_of(&result.await?) }.boxed()
        });
        Tool(Arc::new(ToolParts {
            name: name.into(),
            description: description.into(),
            schema: Arc::new(schema),
            result: None,
            timeout: TIMEOUT,
            is_exclusive: false,
            is_silent: false,
            function,
        }))
    }

    /// Sets the maximum duration of a call. The default is 60 seconds.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Tool {
        Tool(Arc::new(ToolParts { timeout, ..self.0.as_ref().clone() }))
    }

    /// Sets the JSON Schema of the results, which programs then read as values and not as strings.
    /// The results are not checked against it.
    #[must_use]
    pub fn result(self, schema: Json) -> Tool {
        Tool(Arc::new(ToolParts { result: Some(Arc::new(schema)), ..self.0.as_ref().clone() }))
    }

    /// Makes the tool run alone: if an answer of the model calls it beside others, only this call is
    /// executed, and the others are refused.
    #[must_use]
    pub fn exclusive(self) -> Tool {
        Tool(Arc::new(ToolParts { is_exclusive: true, ..self.0.as_ref().clone() }))
    }

    /// Makes the tool one without a result for the model, such as a log. If all calls of an answer are
    /// silent, the run ends, and its answer is the text beside the calls. The model reads a failure.
    #[must_use]
    pub fn silent(self) -> Tool {
        Tool(Arc::new(ToolParts { is_silent: true, ..self.0.as_ref().clone() }))
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

fn json_of(output: &impl Serialize) -> Result<Json, ToolError> {
    serde_json::to_value(output)
        .map_err(|error| ToolError::new(format!("the result cannot be written as JSON: {error}")))
}

/// The context of a tool call.
#[derive(Clone)]
pub struct ToolContext(Arc<RunState>);

impl ToolContext {
    /// Returns the state that the run's middleware and tools share. It includes the run's ids, its
    /// context and its cancellation handle.
    #[must_use]
    pub fn run(&self) -> &RunState {
        &self.0
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
struct CompiledTool {
    tool: Tool,
    program: ToolProgram,
}

/// Tools that are ready for calls: their names are checked, and their schemas compiled.
///
/// An agent makes one of its tools. An application that runs programs without a model offers them
/// the [programs](ToolSet::programs) of the tools, and grants them the [tool box](ToolSet::of_run).
#[derive(Clone, Default)]
pub struct ToolSet(Arc<[CompiledTool]>);

/// The reason why a tool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTool {
    /// The tool's name.
    pub tool: String,
    /// The rule that the tool violates.
    pub why: String,
}

impl fmt::Display for InvalidTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool `{}` is invalid: {}", self.tool, self.why)
    }
}

impl std::error::Error for InvalidTool {}

impl ToolSet {
    /// Checks the names of tools and compiles their schemas.
    ///
    /// # Errors
    /// If a tool is invalid.
    pub fn new(tools: &[Tool]) -> Result<ToolSet, InvalidTool> {
        let compiled = tools.iter().map(|tool| {
            compile(tool).map_err(|why| InvalidTool { tool: tool.name().to_owned(), why })
        });
        Ok(ToolSet(compiled.collect::<Result<_, _>>()?))
    }

    /// Returns true if there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tools.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.iter().map(|compiled| &compiled.tool)
    }

    /// Returns the programs through which models and other programs call the tools. `owner` is the
    /// name of the agent, or of what else has the tools.
    #[must_use]
    pub fn programs(&self, owner: &str) -> Vec<Entry> {
        let entry = |compiled: &CompiledTool| {
            let parts = &compiled.tool.0;
            let meta = Meta {
                description: parts.description.clone(),
                result: parts.result.as_deref().map(result_shape),
                exclusive: parts.is_exclusive,
                silent: parts.is_silent,
                ..Meta::default()
            };
            compiled.program.entry(Origin::Agent(owner.to_owned()), meta)
        };
        self.0.iter().map(entry).collect()
    }

    /// Returns the tools for the programs of one run, whose state the tools share.
    #[must_use]
    pub fn of_run(&self, run: Arc<RunState>) -> Arc<dyn ToolBox> {
        Arc::new(RunTools { tools: self.clone(), run })
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn compile(tool: &Tool) -> Result<CompiledTool, String> {
    let namespace = tool.name().split_once('.').map(|(namespace, _)| namespace);
    if wattle_rt::is_word(tool.name()) || namespace.is_some_and(wattle_capability::is_namespace) {
        let why = "programs cannot call a tool of this name: it is a word of the language or begins \
                   like host functions";
        return Err(why.to_owned());
    }
    let name = tool.name().parse().map_err(|error| format!("{error}"))?;
    let program = ToolProgram::new(name, tool.name(), tool.schema())?;
    Ok(CompiledTool { tool: tool.clone(), program })
}

/// The tools of one run.
struct RunTools {
    tools: ToolSet,
    run: Arc<RunState>,
}

impl RunTools {
    async fn run(&self, name: String, arguments: String) -> Result<String, Failure> {
        let Some(tool) = self.tools.0.iter().find(|tool| tool.tool.name() == name) else {
            let known: Vec<&str> = self.tools.iter().map(Tool::name).collect();
            let reason = format!("there is no tool `{name}`; there is `{}`", known.join("`, `"));
            return Err(Failure::new(Code::ENOENT, reason));
        };
        let arguments = tool.program.read(&arguments)?;
        let parts = Arc::clone(&tool.tool.0);
        let (timeout, is_typed) = (parts.timeout, parts.result.is_some());
        let context = ToolContext(Arc::clone(&self.run));
        // A program's stack is small, so the function runs in a separate task. If it panics, only
        // this call fails.
        let call = tokio::spawn(async move { (parts.function)(arguments, context).await });
        let call = AbortOnDropHandle::new(call);
        match tokio::time::timeout(timeout, call).await {
            Ok(Ok(Ok(Json::String(text)))) if !is_typed => Ok(text),
            Ok(Ok(Ok(value))) => Ok(value.to_string()),
            Ok(Ok(Err(ToolError(reason)))) => {
                let reason = truncate(&reason, MAX_ERROR);
                Err(Failure::new(Code::EREMOTE, format!("the tool `{name}` failed: {reason}")))
            }
            Ok(Err(stopped)) => {
                let run = self.run.run_id();
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
