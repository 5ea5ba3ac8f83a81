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
use serde_json::{Map, Value as Json};
use tokio_util::task::AbortOnDropHandle;
use wattle_capability::PortFuture;
use wattle_capability::schema::{Schema, SchemaLimits};
use wattle_capability::tool::ToolBox;
use wattle_catalog::{Arg, Entry, Meta, Name, TypeHint};
use wattle_rt::{Code, Failure, quote, truncate};

use super::middleware::RunState;
use super::run::AgentRun;

/// Default maximum duration of a call.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size of a schema, in bytes.
const MAX_SCHEMA: usize = 64 << 10;

/// Maximum number of values in a schema, with references expanded.
const MAX_PARTS: usize = 4_096;

/// Maximum number of properties in a tool's input.
const MAX_PROPERTIES: usize = 32;

/// Maximum length of a property name, in characters.
const MAX_PROPERTY: usize = 64;

/// Maximum number of violations that an error lists.
const MAX_FAULTS: usize = 8;

/// Maximum length of a tool's error, in characters.
const MAX_ERROR: usize = 4_000;

/// Maximum size of a call's arguments, in bytes.
const MAX_ARGUMENTS: usize = 4 << 20;

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

/// A tool with a compiled schema, ready to be called.
pub(super) struct CompiledTool {
    pub(super) tool: Tool,
    name: Name,
    schema: Schema,
    required: Vec<String>,
    args: Vec<Arg>,
}

impl CompiledTool {
    /// Checks the name and compiles the schema.
    ///
    /// # Errors
    /// If the tool is invalid. The error names the rule that the tool violates.
    pub(super) fn of(tool: &Tool) -> Result<CompiledTool, String> {
        let name: Name = tool.name().parse().map_err(|error| format!("{error}"))?;
        let limits = SchemaLimits { text: MAX_SCHEMA, parts: MAX_PARTS, checks_formats: true };
        let schema = Schema::compile(tool.schema(), limits)
            .map_err(|why| format!("the schema of its input cannot be used: {why}"))?;
        let required = required(tool.schema());
        let args = args(tool.schema(), &required)?;
        Ok(CompiledTool { tool: tool.clone(), name, schema, required, args })
    }

    /// Returns the program through which a model calls the tool.
    pub(super) fn program(&self, agent: &str) -> Entry {
        let mut uses = vec!["tool".to_owned()];
        if !self.args.is_empty() {
            uses.extend(["json".to_owned(), "str".to_owned()]);
        }
        let meta = Meta {
            description: self.tool.description().to_owned(),
            args: self.args.clone(),
            returns: Some("the tool's result".to_owned()),
            uses: Some(uses),
            ..Meta::default()
        };
        Entry::of_agent(agent, self.name.clone(), meta, self.body())
    }

    /// Returns the source of the tool's program. The program combines its arguments into a JSON
    /// object and calls the tool with the object.
    fn body(&self) -> String {
        let mut body = String::new();
        let mut before = "{".to_owned();
        for (at, arg) in self.args.iter().enumerate() {
            let key = Json::String(arg.name.clone());
            let (form, piece) = (if at == 0 { "let" } else { "set" }, format!("{before}{key}:"));
            let piece = match at {
                0 => wat(&piece),
                _ => format!("(str.cat $json {})", wat(&piece)),
            };
            let value = match (arg.type_hint, &arg.default) {
                (TypeHint::String, None) => format!("(json.quote (arg {at}))"),
                (TypeHint::String, Some(_)) => {
                    format!("(if (len (arg {at})) (json.quote (arg {at})) \"null\")")
                }
                // A number in a notation that JSON does not allow, such as `.5`, is quoted, so that
                // it violates the schema.
                (TypeHint::Float, _) => {
                    format!("(if (json.has (arg {at}) \"\") (arg {at}) (json.quote (arg {at})))")
                }
                _ => format!("(arg {at})"),
            };
            _ = writeln!(body, "({form} $json (str.cat {piece} {value}))");
            before = ",".to_owned();
        }
        let json = if self.args.is_empty() {
            "\"{}\"".to_owned()
        } else {
            "(str.cat $json \"}\")".to_owned()
        };
        _ = writeln!(body, "(ret (tool.call {} {json}))", wat(self.name.as_str()));
        body
    }

    /// Parses the arguments of a call and checks them against the schema.
    fn read(&self, arguments: &str) -> Result<Json, Failure> {
        if arguments.len() > MAX_ARGUMENTS {
            return Err(Failure::new(Code::EBOUND, "the arguments have more than 4 MiB"));
        }
        let parsed: Result<Map<String, Json>, _> = serde_json::from_str(arguments);
        let mut fields = parsed.map_err(|error| {
            let shown = quote(arguments, 100);
            Failure::new(Code::EPARSE, format!("{shown} is not a JSON object: {error}"))
        })?;
        // The tool's program passes null for an optional argument that is missing.
        fields.retain(|name, value| !value.is_null() || self.required.contains(name));
        let arguments = Json::Object(fields);
        match self.schema.faults(&arguments, MAX_FAULTS) {
            faults if faults.is_empty() => Ok(arguments),
            faults => {
                let name = self.tool.name();
                let reason =
                    format!("the arguments of `{name}` are invalid: {}", faults.join("; "));
                Err(Failure::new(Code::EBOUND, reason))
            }
        }
    }
}

/// Formats a string as a string literal in program source.
fn wat(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the names of the required properties.
fn required(schema: &Json) -> Vec<String> {
    let names = schema.get("required").and_then(Json::as_array).into_iter().flatten();
    names.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Returns the arguments of a tool's program: the properties of its schema, the required ones
/// first.
fn args(schema: &Json, required: &[String]) -> Result<Vec<Arg>, String> {
    if schema.get("type").and_then(Json::as_str) != Some("object") {
        return Err("its input must be a JSON object; make it a struct with named fields".into());
    }
    let properties = schema.get("properties").and_then(Json::as_object);
    let properties: Vec<(&String, &Json)> = properties.into_iter().flatten().collect();
    if properties.len() > MAX_PROPERTIES {
        return Err(format!("its input has more than {MAX_PROPERTIES} properties"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    for (name, _) in &properties {
        if name.is_empty() || name.len() > MAX_PROPERTY || !name.chars().all(is_plain) {
            return Err(format!(
                "the property {} has an invalid name: it needs 1 to {MAX_PROPERTY} letters, \
                 digits, `_`, `-` and `.`",
                quote(name, MAX_PROPERTY)
            ));
        }
    }
    let is_required = |name: &str| required.iter().any(|one| one == name);
    let (first, last): (Vec<_>, Vec<_>) =
        properties.into_iter().partition(|(name, _)| is_required(name));
    let first = first.into_iter().map(|(name, property)| arg(schema, name, property, true));
    Ok(first
        .chain(last.into_iter().map(|(name, property)| arg(schema, name, property, false)))
        .collect())
}

/// Returns the argument that a property of the schema describes.
fn arg(schema: &Json, name: &str, property: &Json, is_required: bool) -> Arg {
    let type_hint = type_hint(schema, property);
    let description = property.get("description").and_then(Json::as_str).unwrap_or_default();
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    };
    let default = match (is_required, property.get("default").filter(|value| !value.is_null())) {
        (true, _) => None,
        (false, Some(default)) => Some(text(default)),
        (false, None) if type_hint == TypeHint::String => Some(String::new()),
        (false, None) => Some("null".to_owned()),
    };
    let choices = resolved(schema, property).get("enum").and_then(Json::as_array);
    let format = choices
        .map(|choices| choices.iter().map(text).collect::<Vec<_>>().join("|"))
        .filter(|format| type_hint == TypeHint::String && format.len() <= MAX_PROPERTY);
    Arg {
        name: name.to_owned(),
        type_hint,
        format,
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
        default,
    }
}

/// Returns the schema that a property refers to, or the property's own schema.
fn resolved<'a>(schema: &'a Json, property: &'a Json) -> &'a Json {
    let reference = property.get("$ref").and_then(Json::as_str);
    let target = reference.and_then(|it| it.strip_prefix('#')).and_then(|it| schema.pointer(it));
    target.unwrap_or(property)
}

/// Returns the type of an argument: the type of a scalar property, or JSON for any other property.
fn type_hint(schema: &Json, property: &Json) -> TypeHint {
    let kinds: Vec<&str> = match resolved(schema, property).get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "null").collect();
    match kinds.as_slice() {
        ["string"] => TypeHint::String,
        ["integer"] => TypeHint::Int,
        ["number"] => TypeHint::Float,
        ["boolean"] => TypeHint::Bool,
        _ => TypeHint::Json,
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
        let arguments = tool.read(&arguments)?;
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
