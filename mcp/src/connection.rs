//! One connection to a server: its start, its tools, and its calls.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ElicitationAction, GetPromptRequestParams,
    Implementation, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RoleClient, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, ErrorData};
use serde_json::{Map, Value as Json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wattle_agent::host::rt::truncate;

use crate::http::EgressHttp;
use crate::lines::{Faults, Lines, MAX_MESSAGE};
use crate::oauth::Challenge;
use crate::{ServerError, ToolDefinition, result};

/// Maximum number of tools of a server.
const MAX_TOOLS: usize = 2_000;

/// Maximum number of resources in a list.
const MAX_RESOURCES: usize = 2_000;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 200;

/// Maximum size of all tools of a server, in bytes.
const MAX_DEFINITIONS: usize = 16 << 20;

/// Maximum length of the end of a process's standard error that errors show, in bytes.
const MAX_STDERR: usize = 2_000;

/// Maximum length of a version that an error shows, in characters.
const MAX_VERSION: usize = 40;

/// The time for which an error waits for the last words of a process.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A call that shows signs of life may take this many times the limit on silence.
const PATIENCE: u32 = 10;

/// The running process of a server.
pub struct Launched {
    /// The process's standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// The process's standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// The process's standard error.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
}

/// A future that starts a process.
pub type Launch<'a> = Pin<Box<dyn Future<Output = io::Result<Launched>> + Send + 'a>>;

/// The port that starts the processes of servers. A process ends when its input is closed.
pub trait Launcher: Send + Sync {
    /// Starts the process of the server with this name.
    fn launch<'a>(&'a self, server: &'a str) -> Launch<'a>;
}

/// The way to a server.
pub(crate) enum Way {
    /// A process that is started.
    Process(Arc<dyn Launcher>),
    /// Requests to a URL.
    Http {
        /// The URL.
        url: String,
        /// The client, with the headers of each request.
        client: Box<EgressHttp>,
    },
}

/// An open connection.
pub(crate) struct Connection {
    server: Arc<str>,
    running: RunningService<RoleClient, Handler>,
    signs: Arc<Signs>,
    witness: Witness,
    timeout: Duration,
}

/// What is known about a process besides its answers.
#[derive(Clone, Default)]
struct Witness {
    faults: Arc<Mutex<Faults>>,
    /// The end of its standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    /// A token that is cancelled when it has written its last error.
    ended: CancellationToken,
}

/// What the server did outside of its answers.
#[derive(Default)]
struct Signs {
    /// The list of tools has changed since it was read.
    tools_changed: AtomicBool,
    /// A call made progress.
    progress: Notify,
}

/// Answers the requests and notifications of a server.
struct Handler {
    signs: Arc<Signs>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("wattle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(Default::default(), own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signs.tools_changed.store(true, Ordering::Relaxed);
    }

    async fn on_progress(
        &self,
        _: rmcp::model::ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.signs.progress.notify_waiters();
    }

    /// Declines: a server's question reaches no person, since the program that calls the tool cannot
    /// wait for one.
    async fn create_elicitation(
        &self,
        _: rmcp::model::ElicitRequestParams,
        _: rmcp::service::RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ElicitResult, ErrorData> {
        Ok(rmcp::model::ElicitResult::new(ElicitationAction::Decline))
    }
}

impl Connection {
    /// Connects to a server. `known` is the version of the protocol that the server spoke the last
    /// time.
    pub(crate) async fn open(
        server: &Arc<str>,
        way: &Way,
        known: Option<&str>,
        timeout: Duration,
    ) -> Result<Connection, ServerError> {
        let signs = Arc::<Signs>::default();
        // The witness of the last start.
        let witness = Mutex::new(Witness::default());
        let speaks_legacy = known.is_some_and(|version| version < ProtocolVersion::LATEST.as_str());
        let opened = async {
            if !speaks_legacy {
                let mode = ClientLifecycleMode::Auto {
                    preferred_versions: vec![ProtocolVersion::LATEST],
                    legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
                };
                match start(server, way, mode, &signs, &witness).await {
                    // Servers of old libraries end if the first request is not `initialize`.
                    Err(Unstarted::Ended) if matches!(way, Way::Process(_)) => {}
                    started => return started.map_err(|why| why.of(server, &witness.lock())),
                }
            }
            let started =
                start(server, way, ClientLifecycleMode::Initialize, &signs, &witness).await;
            started.map_err(|why| why.of(server, &witness.lock()))
        };
        let running = match tokio::time::timeout(timeout, opened).await {
            Ok(running) => running?,
            Err(_) => {
                let why = format!("it did not start within {} s", timeout.as_secs());
                let why = witness.lock().explain(&why);
                return Err(ServerError::not_started(server, &why));
            }
        };
        let witness = witness.into_inner();
        Ok(Connection { server: Arc::clone(server), running, signs, witness, timeout })
    }

    /// Returns the version of the protocol, and the name and version that the server gives itself.
    pub(crate) fn versions(&self) -> (String, String) {
        let Some(info) = self.running.peer().peer_info() else { return Default::default() };
        let own = info.server_info.as_ref();
        let own = own.map(|own| format!("{} {}", own.name, own.version)).unwrap_or_default();
        (info.protocol_version.to_string(), own)
    }

    /// Returns true if the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.running.is_closed() || self.running.peer().is_transport_closed()
    }

    /// Returns the tools of the server if it announced other ones since this function returned them
    /// last.
    pub(crate) async fn changed_tools(&self) -> Result<Option<Vec<ToolDefinition>>, ServerError> {
        if !self.signs.tools_changed.swap(false, Ordering::Relaxed) {
            return Ok(None);
        }
        let tools = self.tools().await;
        if tools.is_err() {
            self.signs.tools_changed.store(true, Ordering::Relaxed);
        }
        tools.map(Some)
    }

    /// Returns the tools of the server, sorted by name.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolDefinition>, ServerError> {
        match tokio::time::timeout(self.timeout, self.all_tools()).await {
            Ok(tools) => tools,
            Err(_) => Err(self.late("tools/list")),
        }
    }

    async fn all_tools(&self) -> Result<Vec<ToolDefinition>, ServerError> {
        let mut tools: Vec<ToolDefinition> = Vec::new();
        let (mut cursor, mut size) = (None, 0_usize);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.running.peer().list_tools(Some(params)).await;
            let page = page.map_err(|error| self.failed(&error))?;
            for tool in page.tools {
                let tool = ToolDefinition::from(tool);
                size += tool.name.len() + tool.description.len();
                size += tool.input_schema.to_string().len();
                size += tool.output_schema.as_ref().map_or(0, |it| it.to_string().len());
                tools.push(tool);
            }
            if tools.len() > MAX_TOOLS || size > MAX_DEFINITIONS {
                return Err(ServerError::too_large(
                    &self.server,
                    format!(
                        "has more than {MAX_TOOLS} tools, or {} MiB of descriptions",
                        MAX_DEFINITIONS >> 20
                    ),
                ));
            }
            if page.next_cursor.is_none() {
                tools.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok(tools);
            }
            if page.next_cursor == cursor {
                let why = "the next page of its list of tools is the same page";
                return Err(ServerError::protocol(&self.server, why));
            }
            cursor = page.next_cursor;
        }
        let what = format!("lists its tools on more than {MAX_PAGES} pages");
        Err(ServerError::too_large(&self.server, what))
    }

    /// Calls a tool. The call may be silent for the server's `timeout`, and take ten times as long
    /// if the server reports progress.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Json>,
    ) -> Result<CallToolResult, ServerError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let call = self.running.call_tool(params);
        tokio::pin!(call);
        let last = Instant::now() + self.timeout * PATIENCE;
        loop {
            let silent = tokio::time::sleep_until(last.min(Instant::now() + self.timeout));
            tokio::select! {
                result = &mut call => {
                    if self.is_closed() {
                        self.witness.hear().await;
                    }
                    return result.map_err(|error| self.failed(&error));
                }
                () = self.signs.progress.notified(), if Instant::now() < last => {}
                () = silent => return Err(self.late(tool)),
            }
        }
    }

    /// Returns true if the server has resources.
    pub(crate) fn has_resources(&self) -> bool {
        let info = self.running.peer().peer_info();
        info.is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Lists the resources, one per line: the URI, the name and the description.
    pub(crate) async fn resources(&self) -> Result<String, ServerError> {
        let mut lines: Vec<String> = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.running.peer().list_resources(Some(params));
            let page = match tokio::time::timeout(self.timeout, page).await {
                Ok(page) => page.map_err(|error| self.failed(&error))?,
                Err(_) => return Err(self.late("resources/list")),
            };
            for resource in page.resources {
                let about = resource.description.or(resource.title).unwrap_or_default();
                let words = about.split_whitespace().collect::<Vec<_>>().join(" ");
                lines.push(format!("{} {} {words}", resource.uri, resource.name).trim().to_owned());
            }
            cursor = page.next_cursor;
            if cursor.is_none() || lines.len() > MAX_RESOURCES {
                lines.truncate(MAX_RESOURCES);
                return Ok(lines.join("\n"));
            }
        }
        let what = format!("lists its resources on more than {MAX_PAGES} pages");
        Err(ServerError::too_large(&self.server, what))
    }

    /// Returns the text of a prompt of the server.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Json>,
    ) -> Result<String, ServerError> {
        let mut params = GetPromptRequestParams::new(name.to_owned());
        params.arguments = Some(arguments);
        let prompt = self.running.get_prompt(params);
        match tokio::time::timeout(self.timeout, prompt).await {
            Ok(Ok(prompt)) => {
                let blocks: Vec<_> = prompt.messages.into_iter().map(|one| one.content).collect();
                Ok(result::joined(&blocks))
            }
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(self.late(name)),
        }
    }

    /// Reads a resource and returns its contents as text.
    pub(crate) async fn read(&self, uri: &str) -> Result<String, ServerError> {
        let read = self.running.read_resource(ReadResourceRequestParams::new(uri));
        match tokio::time::timeout(self.timeout, read).await {
            Ok(Ok(read)) => {
                let texts: Vec<String> = read.contents.iter().map(result::contents).collect();
                Ok(texts.join("\n"))
            }
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(self.late("resources/read")),
        }
    }

    /// Returns the error of a request that was not answered in time.
    fn late(&self, request: &str) -> ServerError {
        let why = self.witness.explain("");
        ServerError::timeout(&self.server, request, self.timeout.as_secs(), &why)
    }

    fn failed(&self, error: &ServiceError) -> ServerError {
        if let Some(challenge) = error.auth_challenge() {
            return rejected(&self.server, challenge);
        }
        match error {
            ServiceError::McpError(error) => ServerError::protocol(&self.server, &error.message),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                let why = self.witness.explain("its connection is closed");
                ServerError::ended(&self.server, &why)
            }
            ServiceError::TransportSend(error) if is_end(error) => {
                ServerError::ended(&self.server, &self.witness.explain("its connection is closed"))
            }
            ServiceError::TransportSend(error) => {
                let why = self.witness.explain(&with_causes(error.error.as_ref()));
                ServerError::unanswered(&self.server, &why)
            }
            ServiceError::UnexpectedResponse => {
                ServerError::protocol(&self.server, "its answer has a wrong form")
            }
            error => ServerError::protocol(&self.server, &error.to_string()),
        }
    }
}

/// Returns the error for a request that the server rejected with this challenge.
fn rejected(server: &str, challenge: &str) -> ServerError {
    let challenge = Challenge::parse(challenge);
    match challenge.error.as_deref() {
        Some("insufficient_scope") => ServerError::insufficient_scope(server, &challenge.scopes),
        _ => ServerError::unauthorized(server),
    }
}

/// The reason why a server did not start.
enum Unstarted {
    /// It ended, or closed its output, before it answered.
    Ended,
    /// It rejected the request with this challenge.
    Rejected(String),
    Other(String),
}

impl Unstarted {
    fn of(self, server: &str, witness: &Witness) -> ServerError {
        let why = match self {
            Unstarted::Ended => witness.explain("it ended before it answered"),
            Unstarted::Rejected(challenge) => return rejected(server, &challenge),
            Unstarted::Other(why) => witness.explain(&why),
        };
        ServerError::not_started(server, &why)
    }
}

impl From<ClientInitializeError> for Unstarted {
    fn from(error: ClientInitializeError) -> Unstarted {
        if let Some(challenge) = error.auth_challenge() {
            return Unstarted::Rejected(challenge.to_owned());
        }
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::ConnectionClosed(_) => Unstarted::Ended,
            ClientInitializeError::JsonRpcError(error) => Unstarted::Other(error.message.into()),
            ClientInitializeError::TransportError { error, .. } if is_end(&error) => {
                Unstarted::Ended
            }
            ClientInitializeError::TransportError { error, .. } => {
                Unstarted::Other(with_causes(error.error.as_ref()))
            }
            error => Unstarted::Other(with_causes(&error)),
        }
    }
}

/// Starts a server, or asks its URL, and agrees on the version of the protocol.
async fn start(
    server: &str,
    way: &Way,
    mode: ClientLifecycleMode,
    signs: &Arc<Signs>,
    slot: &Mutex<Witness>,
) -> Result<RunningService<RoleClient, Handler>, Unstarted> {
    let handler = Handler { signs: Arc::clone(signs) };
    let witness = Witness::default();
    *slot.lock() = witness.clone();
    let started = match way {
        Way::Process(launcher) => {
            let launched = launcher.launch(server).await;
            let launched = launched.map_err(|error| Unstarted::Other(error.to_string()))?;
            keep_end(launched.errors, &witness);
            let faults = Arc::clone(&witness.faults);
            let transport = Lines::<RoleClient, _, _>::new(launched.output, launched.input, faults);
            serve_client_with_lifecycle(handler, transport, mode).boxed().await
        }
        Way::Http { url, client } => {
            witness.ended.cancel();
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .max_sse_event_size(MAX_MESSAGE)
                .max_json_response_size(MAX_MESSAGE);
            let client = client.as_ref().clone();
            let transport = StreamableHttpClientTransport::with_client(client, config);
            serve_client_with_lifecycle(handler, transport, mode).boxed().await
        }
    };
    match started.map_err(Unstarted::from) {
        Err(Unstarted::Ended) => {
            witness.hear().await;
            match witness.faults.lock().end.clone() {
                Some(why) => Err(Unstarted::Other(why)),
                None => Err(Unstarted::Ended),
            }
        }
        Ok(running) => match running.peer().peer_info() {
            Some(info) if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => {
                let version = truncate(info.protocol_version.as_str(), MAX_VERSION);
                Err(Unstarted::Other(format!("it speaks the unknown version {version}")))
            }
            _ => Ok(running),
        },
        Err(why) => Err(why),
    }
}

impl Witness {
    /// Waits a moment for the last words of a process that has ended.
    async fn hear(&self) {
        _ = tokio::time::timeout(LAST_WORDS, self.ended.cancelled()).await;
    }

    /// Returns a reason, with all that the process wrote besides answers.
    fn explain(&self, why: &str) -> String {
        let faults = self.faults.lock();
        let mut parts = vec![faults.end.clone().unwrap_or_else(|| why.to_owned())];
        parts.extend(
            faults
                .noise
                .as_ref()
                .map(|line| format!("it wrote a line that is not a message: {line}")),
        );
        let end = end_of(&self.errors);
        if !end.is_empty() {
            parts.push(format!("its last words: {end}"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("; ")
    }
}

/// Returns true if a message could not be sent because the process has ended.
fn is_end(error: &DynamicTransportError) -> bool {
    let error = error.error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns an error with its causes.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// Reads what a process writes to its standard error, and keeps the end.
fn keep_end(mut errors: Box<dyn AsyncRead + Send + Unpin>, witness: &Witness) {
    let (kept, ended) = (Arc::clone(&witness.errors), witness.ended.clone());
    tokio::spawn(async move {
        let _ended = ended.drop_guard();
        let mut buffer = [0; 4096];
        while let Ok(length) = errors.read(&mut buffer).await {
            let Some(read) = buffer.get(..length).filter(|read| !read.is_empty()) else { break };
            let mut kept = kept.lock();
            kept.extend_from_slice(read);
            let surplus = kept.len().saturating_sub(MAX_STDERR);
            kept.drain(..surplus);
        }
    });
}

fn end_of(errors: &Mutex<Vec<u8>>) -> String {
    let text = String::from_utf8_lossy(&errors.lock()).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
    last.join(" | ")
}
