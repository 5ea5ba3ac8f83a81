//! One connection to a server: its start, its tools, and its calls.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ElicitationAction, Implementation,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, RoleClient, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, ErrorData};
use serde_json::{Map, Value as Json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bound::BoundedLines;
use crate::http::EgressHttp;
use crate::oauth::Challenge;
use crate::{ServerError, ToolDefinition, result};

/// Maximum size of a message from a server, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// Maximum number of tools of a server.
const MAX_TOOLS: usize = 2_000;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 200;

/// Maximum size of all tools of a server, in bytes.
const MAX_DEFINITIONS: usize = 16 << 20;

/// Maximum length of the end of a process's standard error that errors show, in bytes.
const MAX_STDERR: usize = 2_000;

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
    errors: Arc<Mutex<Vec<u8>>>,
    timeout: Duration,
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
    protocol: ProtocolVersion,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("wattle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(Default::default(), own).with_protocol_version(self.protocol.clone())
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
        let (signs, errors) = (Arc::<Signs>::default(), Arc::<Mutex<Vec<u8>>>::default());
        let legacy = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let speaks_legacy = known.is_some_and(|version| version < ProtocolVersion::LATEST.as_str());
        let mode = if speaks_legacy {
            ClientLifecycleMode::Initialize
        } else {
            ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(legacy.clone()),
            }
        };
        let handler = Handler { signs: Arc::clone(&signs), protocol: legacy };
        let opened = async {
            match way {
                Way::Process(launcher) => {
                    let launched = launcher.launch(server).await.map_err(|error| {
                        ServerError::not_started(server, &error.to_string())
                    })?;
                    keep_end(launched.errors, Arc::clone(&errors));
                    let output = BoundedLines::new(launched.output, MAX_MESSAGE);
                    let transport =
                        AsyncRwTransport::<RoleClient, _, _>::new(output, launched.input)
                            .with_max_line_length(MAX_MESSAGE + 1);
                    serve_client_with_lifecycle(handler, transport, mode)
                        .boxed()
                        .await
                        .map_err(|error| start_error(server, &error, &end_of(&errors)))
                }
                Way::Http { url, client } => {
                    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                        .max_sse_event_size(MAX_MESSAGE)
                        .max_json_response_size(MAX_MESSAGE);
                    let transport =
                        StreamableHttpClientTransport::with_client(client.as_ref().clone(), config);
                    serve_client_with_lifecycle(handler, transport, mode)
                        .boxed()
                        .await
                        .map_err(|error| start_error(server, &error, ""))
                }
            }
        };
        let running = match tokio::time::timeout(timeout, opened).await {
            Ok(running) => running?,
            Err(_) => {
                let why = format!("it did not start within {} s", timeout.as_secs());
                return Err(ServerError::not_started(server, &with_end(&why, &end_of(&errors))));
            }
        };
        Ok(Connection { server: Arc::clone(server), running, signs, errors, timeout })
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

    /// Returns true if the server announced other tools since this function was called last.
    pub(crate) fn tools_changed(&self) -> bool {
        self.signs.tools_changed.swap(false, Ordering::Relaxed)
    }

    /// Returns the tools of the server, sorted by name.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolDefinition>, ServerError> {
        match tokio::time::timeout(self.timeout, self.all_tools()).await {
            Ok(tools) => tools,
            Err(_) => Err(ServerError::timeout(&self.server, "tools/list", self.timeout.as_secs())),
        }
    }

    async fn all_tools(&self) -> Result<Vec<ToolDefinition>, ServerError> {
        let mut tools: Vec<ToolDefinition> = Vec::new();
        let (mut cursor, mut size) = (None, 0_usize);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
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
            cursor = page.next_cursor;
            if cursor.is_none() {
                tools.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok(tools);
            }
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
                result = &mut call => return result.map_err(|error| self.failed(&error)),
                () = self.signs.progress.notified(), if Instant::now() < last => {}
                () = silent => {
                    let seconds = self.timeout.as_secs();
                    return Err(ServerError::timeout(&self.server, tool, seconds));
                }
            }
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
            Err(_) => {
                Err(ServerError::timeout(&self.server, "resources/read", self.timeout.as_secs()))
            }
        }
    }

    fn failed(&self, error: &ServiceError) -> ServerError {
        if let Some(challenge) = error.auth_challenge() {
            return rejected(&self.server, challenge);
        }
        match error {
            ServiceError::McpError(error) => ServerError::protocol(&self.server, &error.message),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                let why = with_end("its connection is closed", &end_of(&self.errors));
                ServerError::ended(&self.server, &why)
            }
            ServiceError::TransportSend(error) => {
                let why = with_causes(error.error.as_ref());
                ServerError::ended(&self.server, &with_end(&why, &end_of(&self.errors)))
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

fn start_error(server: &str, error: &ClientInitializeError, end: &str) -> ServerError {
    if let Some(challenge) = error.auth_challenge() {
        return rejected(server, challenge);
    }
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it ended before it answered".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        ClientInitializeError::TransportError { error, .. } => with_causes(error.error.as_ref()),
        error => with_causes(error),
    };
    ServerError::not_started(server, &with_end(&why, end))
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

fn with_end(why: &str, end: &str) -> String {
    if end.is_empty() { why.to_owned() } else { format!("{why}; its last words: {end}") }
}

/// Reads what a process writes to its standard error, and keeps the end.
fn keep_end(mut errors: Box<dyn AsyncRead + Send + Unpin>, kept: Arc<Mutex<Vec<u8>>>) {
    tokio::spawn(async move {
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
