//! The MCP server: a client writes programs over everything that a deployment offers.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::combinators::BoxBody;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, JsonObject,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Map, Value as Json, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use wattle_agent::agents::{Agents, DEFAULT_AGENT};
use wattle_agent::host::capability::policy::Approver;
use wattle_agent::host::catalog::{Catalog, Entry, TypeHint};
use wattle_agent::host::machine::{Event, Stop};
use wattle_agent::host::rt::truncate;

use crate::ClientCall;
use crate::lines::{Lines, MAX_MESSAGE};
use crate::rounds::{Parked, Round, RoundEnd};

/// The description of `run_program`, which teaches the language.
pub const LANGUAGE: &str = include_str!("language.md");

/// Maximum number of programs that a search returns.
const MAX_FOUND: usize = 20;

/// Maximum length of a description in the result of a search, in characters.
const MAX_ABOUT: usize = 200;

/// Maximum size of a program or a task, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// Maximum number of arguments of a program.
const MAX_ARGS: usize = 64;

/// The result of a client's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEnd {
    /// The output, or the reason for the failure.
    pub text: String,
    /// If true, the program ran and its exit code is 0.
    pub success: bool,
}

/// A future that performs a client's call.
pub type Performing<'a> = BoxFuture<'a, CallEnd>;

/// A client's request that is under way.
#[derive(Clone)]
pub struct Underway {
    /// A token that is cancelled when the client cancels the request or leaves.
    pub cancel: CancellationToken,
    /// Receives a sentence for each step.
    pub progress: Arc<dyn Fn(String) + Send + Sync>,
    /// Asks the client's user about calls that need approval.
    pub approver: Arc<dyn Approver>,
}

impl Underway {
    /// Reports an event of a run to the client. Returns the result of a call, or the answer of a task,
    /// if the event contains it.
    #[must_use]
    pub fn observe(&self, event: &Event) -> Option<CallEnd> {
        match event {
            Event::ToolStart { step, label, description, .. } => {
                let step = format!("step {step}: {label} {description}");
                (self.progress)(step.trim().to_owned());
                None
            }
            Event::ToolResult { success, output, .. } => {
                Some(CallEnd { text: output.clone(), success: *success })
            }
            Event::Retry { error, .. } => Some(CallEnd::failed(error.clone())),
            Event::Response { text, stop, .. } => {
                Some(CallEnd { text: text.clone(), success: *stop == Stop::Answered })
            }
            Event::Error { message } => Some(CallEnd::failed(message.clone())),
            _ => None,
        }
    }
}

impl CallEnd {
    /// Returns the result of a call that failed.
    #[must_use]
    pub fn failed(text: String) -> CallEnd {
        CallEnd { text, success: false }
    }
}

/// An agent that a client may give a task to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAgent {
    /// The agent's name.
    pub name: String,
    /// A sentence about the agent.
    pub about: String,
}

impl TaskAgent {
    /// Returns the declared agents, after the default one if it is not declared.
    #[must_use]
    pub fn among(agents: &Agents) -> Vec<TaskAgent> {
        let declared = agents.list().into_iter().map(|agent| TaskAgent {
            name: agent.name.clone(),
            about: agent.description.trim().to_owned(),
        });
        let mut all: Vec<TaskAgent> = declared.collect();
        if !all.iter().any(|agent| agent.name == DEFAULT_AGENT) {
            let about = "The agent of this deployment".to_owned();
            all.insert(0, TaskAgent { name: DEFAULT_AGENT.to_owned(), about });
        }
        all
    }
}

/// What an MCP client may use of a deployment.
pub trait Deployment: Send + Sync + 'static {
    /// Returns the current catalog.
    fn catalog(&self) -> Catalog;

    /// Returns true if the client's programs may call a program of the catalog.
    fn offers(&self, entry: &Entry) -> bool;

    /// Returns the programs that are tools of their own.
    fn exposed(&self) -> &[String];

    /// Performs a call.
    fn call(&self, call: ClientCall, underway: Underway) -> Performing<'_>;

    /// Checks a program and returns the findings, or what it reaches.
    fn check(&self, program: String) -> Performing<'_>;

    /// Returns the agents for tasks. Without a model, there are none.
    fn agents(&self) -> Vec<TaskAgent>;

    /// Gives a task to an agent and returns its answer.
    fn task(&self, task: String, agent: Option<String>, underway: Underway) -> Performing<'_>;

    /// Returns the text of a page: `language` or `functions`.
    fn page(&self, name: &str) -> Option<String>;
}

/// The MCP server of a deployment, for one client.
#[derive(Clone)]
pub struct Gateway {
    deployment: Arc<dyn Deployment>,
    /// The calls that wait for the client's user, unless nothing is kept between requests.
    parked: Option<Parked>,
}

/// The pages that clients can read, each with a sentence.
const PAGES: &[(&str, &str)] = &[
    ("language", "The language of programs"),
    ("functions", "The host functions and the catalog programs, with signatures"),
];

impl Gateway {
    /// Creates the server.
    #[must_use]
    pub fn new(deployment: Arc<dyn Deployment>) -> Gateway {
        Gateway { deployment, parked: Some(Parked::default()) }
    }

    /// Serves a client over this process's standard input and output until the client leaves or
    /// `stop` ends.
    ///
    /// # Errors
    /// If the client does not begin as the protocol demands.
    pub async fn serve_stdio(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let (input, output) = rmcp::transport::io::stdio();
        self.serve_over(input, output, stop).await
    }

    /// Serves a client over two streams until the client leaves or `stop` ends.
    ///
    /// # Errors
    /// If the client does not begin as the protocol demands.
    pub async fn serve_over(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: impl Future<Output = ()>,
    ) -> Result<(), String> {
        let transport = Lines::<RoleServer, _, _>::new(input, output, Arc::default());
        let serving = match self.serve(transport).await {
            Ok(serving) => serving,
            // A client that leaves before it begins wants nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let token = serving.cancellation_token();
        let ended = serving.waiting();
        tokio::pin!(ended, stop);
        tokio::select! {
            () = &mut stop => token.cancel(),
            _ = &mut ended => return Ok(()),
        }
        _ = ended.await;
        Ok(())
    }

    /// Answers one HTTP request of a client. Nothing is kept between requests, so any of several
    /// servers may get the next one. `stop` ends a stream.
    pub async fn serve_http<B>(
        self,
        request: http::Request<B>,
        stop: CancellationToken,
    ) -> http::Response<BoxBody<Bytes, Infallible>>
    where
        B: http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
        B::Data: Send + 'static,
    {
        // The server has checked the host and the origin.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE)
            .with_cancellation_token(stop);
        let sessions = Arc::new(NeverSessionManager::default());
        let gateway = Gateway { parked: None, ..self };
        let service = StreamableHttpService::new(move || Ok(gateway.clone()), sessions, config);
        service.handle(request).await
    }

    fn tools(&self) -> Vec<Tool> {
        let program = json!({"type": "string", "description": "The program"});
        let args = json!({
            "type": "array", "items": {"type": "string"},
            "description": "The program's arguments, as (arg 0), (arg 1), …",
        });
        let query = json!({"type": "string", "description": "Words, such as: send mail"});
        let mut tools = vec![
            tool(
                "run_program",
                LANGUAGE.trim(),
                json!({"program": program, "args": args}),
                &["program"],
                ToolAnnotations::new(),
            ),
            tool(
                "check_program",
                "Checks a program without running it. Returns the errors with hints, or the hosts, \
                 files and tools that it can reach.",
                json!({"program": program}),
                &["program"],
                ToolAnnotations::new().read_only(true),
            ),
            tool(
                "search_tools",
                "Finds the functions that programs may call, with their signatures. Call it before \
                 run_program if you do not know the functions.",
                json!({"query": query}),
                &["query"],
                ToolAnnotations::new().read_only(true),
            ),
        ];
        let agents = self.deployment.agents();
        if !agents.is_empty() {
            let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            tools.push(tool(
                "run_task",
                "Gives a task to an agent, which solves it step by step with programs of its own, \
                 and returns its answer.",
                json!({
                    "prompt": {"type": "string", "description": "The whole task"},
                    "agent": {"type": "string", "enum": names, "description": "The agent"},
                }),
                &["prompt"],
                ToolAnnotations::new(),
            ));
        }
        let catalog = self.deployment.catalog();
        let exposed = self.deployment.exposed().iter().filter_map(|name| catalog.get(name));
        tools.extend(exposed.map(|entry| {
            let (properties, required) = parameters(entry);
            let required: Vec<&str> = required.iter().map(String::as_str).collect();
            let about = &entry.meta().description;
            tool(&tool_name(entry), about, properties, &required, ToolAnnotations::new())
        }));
        tools
    }

    async fn answer(
        &self,
        name: &str,
        arguments: &Map<String, Json>,
        underway: Underway,
    ) -> Result<CallEnd, String> {
        match name {
            "run_program" => {
                known(arguments, &["program", "args"])?;
                let program = text(arguments, "program")?;
                let args = arguments.get("args").map(strings).transpose()?.unwrap_or_default();
                Ok(self.deployment.call(ClientCall::Program { program, args }, underway).await)
            }
            "check_program" => {
                known(arguments, &["program"])?;
                Ok(self.deployment.check(text(arguments, "program")?).await)
            }
            "search_tools" => {
                known(arguments, &["query"])?;
                let offers = |entry: &Entry| self.deployment.offers(entry);
                let text = found(&self.deployment.catalog(), &text(arguments, "query")?, &offers);
                Ok(CallEnd { text, success: true })
            }
            "run_task" if !self.deployment.agents().is_empty() => {
                known(arguments, &["prompt", "agent"])?;
                let agent = arguments.get("agent").filter(|agent| !agent.is_null());
                let agent = agent.map(|_| text(arguments, "agent")).transpose()?;
                Ok(self.deployment.task(text(arguments, "prompt")?, agent, underway).await)
            }
            name => {
                let catalog = self.deployment.catalog();
                let exposed = self.deployment.exposed().iter();
                let mut exposed = exposed.filter_map(|name| catalog.get(name));
                let entry = exposed.find(|entry| tool_name(entry) == name);
                let entry = entry.ok_or_else(|| {
                    format!("there is no tool `{name}`; `tools/list` names the tools")
                })?;
                let call = ClientCall::Catalog {
                    name: entry.name().to_string(),
                    arguments: arguments.clone(),
                };
                Ok(self.deployment.call(call, underway).await)
            }
        }
    }
}

/// Returns the name of the tool that a program is.
fn tool_name(entry: &Entry) -> String {
    entry.name().as_str().replace('.', "_")
}

fn tool(
    name: &str,
    about: &str,
    properties: Json,
    required: &[&str],
    hints: ToolAnnotations,
) -> Tool {
    let schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name.to_owned(), about.to_owned(), schema).with_annotations(hints)
}

/// Returns the properties of a program's arguments, and the names of the required ones.
fn parameters(entry: &Entry) -> (Json, Vec<String>) {
    let args = &entry.meta().args;
    let property = |arg: &wattle_agent::host::catalog::Arg| {
        let kind = match arg.type_hint {
            TypeHint::Int => json!({"type": "integer"}),
            TypeHint::Float => json!({"type": "number"}),
            TypeHint::Bool => json!({"type": "boolean"}),
            TypeHint::Json => json!({}),
            TypeHint::String | TypeHint::Path | TypeHint::Url => json!({"type": "string"}),
        };
        let mut kind = kind;
        let about = match &arg.format {
            Some(format) if !arg.description.is_empty() => {
                format!("{} ({format})", arg.description)
            }
            Some(format) => format.clone(),
            None => arg.description.clone(),
        };
        if let (Some(kind), false) = (kind.as_object_mut(), about.is_empty()) {
            kind.insert("description".to_owned(), about.into());
        }
        (arg.name.clone(), kind)
    };
    let required = args.iter().filter(|arg| arg.default.is_none());
    (
        Json::Object(args.iter().map(property).collect()),
        required.map(|arg| arg.name.clone()).collect(),
    )
}

/// Returns the programs that match a query, each with its signature.
fn found(catalog: &Catalog, query: &str, offers: &dyn Fn(&Entry) -> bool) -> String {
    let words = truncate(query, 1_000);
    let lines: Vec<String> = catalog
        .search(&words)
        .into_iter()
        .filter(|entry| offers(entry))
        .take(MAX_FOUND)
        .map(|entry| {
            let result = entry.meta().result.as_ref();
            let result = result.map(|shape| format!(" → {shape}")).unwrap_or_default();
            let about = truncate(&entry.meta().description, MAX_ABOUT);
            format!("{}{result} — {about}", entry.usage())
        })
        .collect();
    if lines.is_empty() {
        return "nothing matches; try other words".to_owned();
    }
    lines.join("\n")
}

fn known(arguments: &Map<String, Json>, names: &[&str]) -> Result<(), String> {
    match arguments.keys().find(|key| !names.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "there is no argument `{}`; the arguments are {}",
            truncate(key, 100),
            names.join(", ")
        )),
        None => Ok(()),
    }
}

fn text(arguments: &Map<String, Json>, name: &str) -> Result<String, String> {
    match arguments.get(name) {
        Some(Json::String(text)) if text.trim().is_empty() => Err(format!("`{name}` is empty")),
        Some(Json::String(text)) if text.len() > MAX_TEXT => {
            Err(format!("`{name}` has more than {} MiB", MAX_TEXT >> 20))
        }
        Some(Json::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{name}` must be a string")),
        None => Err(format!("`{name}` is missing")),
    }
}

/// Returns the program's arguments. A value that is no string is written as JSON.
fn strings(value: &Json) -> Result<Vec<String>, String> {
    let values = match value {
        Json::Null => return Ok(Vec::new()),
        Json::Array(values) => values,
        _ => return Err("`args` must be a list of strings".to_owned()),
    };
    if values.len() > MAX_ARGS {
        return Err(format!("`args` has more than {MAX_ARGS} items"));
    }
    let string = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    Ok(values.iter().map(string).collect())
}

impl ServerHandler for Gateway {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let own = Implementation::new("wattle", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(
            "Write one program with run_program instead of many calls. search_tools finds the \
             functions.",
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let round = match request.request_state {
            Some(state) => {
                let parked = self.parked.as_ref();
                let round = parked.and_then(|it| it.resume(&state, request.input_responses));
                let why = "the call no longer waits for an answer; call the tool again";
                round.ok_or_else(|| ErrorData::invalid_params(why, None))?
            }
            None => {
                let (gateway, name) = (self.clone(), request.name);
                let arguments = request.arguments.unwrap_or_default();
                Round::new(&context, self.parked.clone(), |underway| {
                    async move {
                        let end = gateway.answer(&name, &arguments, underway).await;
                        end.unwrap_or_else(CallEnd::failed)
                    }
                    .boxed()
                })
            }
        };
        let end = match round.run(&context).await {
            RoundEnd::Done(end) => end,
            RoundEnd::Asks(question) => return Ok(question.into()),
        };
        let content = vec![ContentBlock::text(end.text)];
        let result = match end.success {
            true => CallToolResult::success(content),
            false => CallToolResult::error(content),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page = |(name, about): &(&str, &str)| {
            Resource::new(format!("wattle://{name}"), *name)
                .with_description(*about)
                .with_mime_type("text/markdown")
        };
        Ok(ListResourcesResult::with_all_items(PAGES.iter().map(page).collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let name = request.uri.strip_prefix("wattle://");
        let text = name.and_then(|name| self.deployment.page(name));
        let text = text.ok_or_else(|| {
            ErrorData::resource_not_found("there is no such resource".to_owned(), None)
        })?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let task = PromptArgument::new("task").with_description("The task").with_required(true);
        let prompt =
            |agent: TaskAgent| Prompt::new(agent.name, Some(agent.about), Some(vec![task.clone()]));
        let prompts = self.deployment.agents().into_iter().map(prompt).collect();
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let agents = self.deployment.agents();
        let agent = agents.into_iter().find(|agent| agent.name == request.name);
        let agent = agent.ok_or_else(|| {
            ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None)
        })?;
        let arguments = request.arguments.unwrap_or_default();
        let task = arguments.get("task").and_then(Json::as_str).unwrap_or_default();
        let text =
            format!("Call run_task with the agent `{}` and this prompt:\n{task}", agent.name);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_returns_signatures() {
        let catalog = Catalog::built_in();
        let text = found(&catalog, "read a file", &|_| true);
        assert!(text.lines().any(|line| line.starts_with("file_read(path: path)")), "{text}");
        assert!(text.lines().count() <= MAX_FOUND);
        assert_eq!(found(&catalog, "zzzzqqq", &|_| true), "nothing matches; try other words");
    }

    #[test]
    fn arguments_are_checked_before_anything_runs() {
        let of = |value: Json| value.as_object().cloned().unwrap();
        assert_eq!(text(&of(json!({"p": "x"})), "p").as_deref(), Ok("x"));
        for value in [json!({}), json!({"p": " "}), json!({"p": 3})] {
            assert!(text(&of(value), "p").is_err());
        }
        assert!(known(&of(json!({"p": 1, "q": 2})), &["p"]).unwrap_err().contains("`q`"));
        assert_eq!(strings(&json!(["a", 1, {"b": 2}])).unwrap(), ["a", "1", "{\"b\":2}"]);
        assert!(strings(&json!("a")).is_err());
    }
}
