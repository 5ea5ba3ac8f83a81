//! One configured server: its accepted tools, and its connection, which is opened when it is needed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::{Map, Value as Json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use wattle_agent::host::capability;
use wattle_agent::host::catalog::Entry;
use wattle_agent::host::machine::one_line;
use wattle_agent::host::rt::Failure;

use crate::connection::{Connection, Way};
use crate::definition::{Ask, Tool};
use crate::http::EgressHttp;
use crate::oauth::{Access, SignIn, SignedIn};
use crate::{Change, Pin, ServerError, ServerSettings, ToolDefinition, ToolProblem, result};

/// Maximum number of regular expressions in the schemas of a server. Each costs time to compile.
const MAX_PATTERNS: usize = 1_000;

/// Number of failures in a row after which a server is left alone for a while.
const MAX_FAILURES: u32 = 3;

/// The time for which a server that failed too often is left alone.
const REST: Duration = Duration::from_secs(30);

/// A configured server. Its process is started, or its URL asked, when a tool is called first.
pub struct Server {
    name: Arc<str>,
    settings: ServerSettings,
    way: Result<Way, String>,
    /// The accepted tools, by the names of their programs.
    accepted: RwLock<Accepted>,
    state: Mutex<State>,
}

#[derive(Default)]
struct Accepted {
    pin: Option<Pin>,
    tools: BTreeMap<String, Arc<Tool>>,
    problems: Vec<ToolProblem>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The differences between the accepted tools and those of the open connection.
    changes: Vec<Change>,
    failures: u32,
    last: String,
    /// The server is not started before this time.
    resting: Option<Instant>,
}

/// The state of a server, for `wattle mcp list` and the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The server's name.
    pub name: String,
    /// The command or the URL.
    pub identity: String,
    /// The version of the protocol, if the server has been accepted.
    pub protocol: Option<String>,
    /// The name and version that the server gives itself.
    pub version: Option<String>,
    /// Number of tools that programs may call.
    pub tools: usize,
    /// The tools that are left out.
    pub problems: Vec<ToolProblem>,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        settings: ServerSettings,
        way: Result<Way, String>,
        pin: Option<Pin>,
    ) -> Server {
        let server = Server {
            name: name.into(),
            settings,
            way,
            accepted: RwLock::default(),
            state: Mutex::default(),
        };
        let pin = pin.filter(|pin| pin.server == server.settings.identity());
        if let Some(pin) = pin {
            server.accept(pin);
        }
        server
    }

    /// Returns the server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the server's settings.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Returns the accepted tools, or `None` if the server has never been accepted.
    #[must_use]
    pub fn pin(&self) -> Option<Pin> {
        self.accepted.read().pin.clone()
    }

    /// Returns the accepted tools that are offered, or `None` if the server has never been accepted.
    #[must_use]
    pub fn offered(&self) -> Option<Pin> {
        let mut pin = self.pin()?;
        pin.tools.retain(|tool| self.settings.offers(&tool.name));
        Some(pin)
    }

    /// Returns the server's state.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let accepted = self.accepted.read();
        let pin = accepted.pin.as_ref();
        ServerStatus {
            name: self.name.to_string(),
            identity: self.settings.identity(),
            protocol: pin.map(|pin| pin.protocol.clone()),
            version: pin.map(|pin| pin.version.clone()).filter(|version| !version.is_empty()),
            tools: accepted.tools.len(),
            problems: accepted.problems.clone(),
        }
    }

    /// Returns the first part of the names of the server's programs. It differs from the server's name
    /// if host functions begin like that.
    #[must_use]
    pub fn prefix(&self) -> String {
        // `mcp_git` is taken, too: it is the prefix of the server `git`.
        let name = self.name.trim_start_matches("mcp_");
        if capability::is_namespace(name) {
            format!("mcp_{}", self.name)
        } else {
            self.name.to_string()
        }
    }

    pub(crate) fn tools(&self) -> Vec<Arc<Tool>> {
        self.accepted.read().tools.values().cloned().collect()
    }

    /// Returns the catalog programs of the accepted tools.
    #[must_use]
    pub fn programs(&self) -> Vec<Entry> {
        self.tools().iter().map(|tool| tool.entry.clone()).collect()
    }

    /// Replaces the accepted tools.
    pub fn accept(&self, pin: Pin) {
        let mut accepted = Accepted::default();
        let (prefix, mut patterns) = (self.prefix(), 0);
        for definition in pin.tools.iter().filter(|tool| self.settings.offers(&tool.name)) {
            patterns += definition.patterns();
            let tool = if patterns > MAX_PATTERNS {
                Err(format!("the schemas have more than {MAX_PATTERNS} regular expressions"))
            } else {
                let name = definition.program_name(&prefix);
                name.and_then(|name| definition.compile(&self.name, name))
            };
            let taken = |tool: Tool| match accepted.tools.get(tool.program.name().as_str()) {
                Some(other) => {
                    Err(format!("`{}` has the same name in programs", other.definition.name))
                }
                None => Ok(tool),
            };
            match tool.and_then(taken) {
                Ok(tool) => {
                    accepted.tools.insert(tool.program.name().to_string(), Arc::new(tool));
                }
                Err(why) => accepted.problems.push(ToolProblem {
                    tool: one_line(&definition.name, 100),
                    why: one_line(&why, 1_000),
                }),
            }
        }
        if pin.resources {
            for (ask, definition) in Ask::of_resources() {
                let name = definition.program_name(&prefix);
                let tool = name.and_then(|name| definition.compile(&self.name, name));
                // A tool with that name precedes.
                if let Ok(tool) = tool {
                    let name = tool.program.name().to_string();
                    accepted.tools.entry(name).or_insert_with(|| Arc::new(Tool { ask, ..tool }));
                }
            }
        }
        accepted.pin = Some(pin);
        *self.accepted.write() = accepted;
    }

    /// Connects to the server and returns its tools as they are now.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub async fn look(&self) -> Result<Pin, ServerError> {
        let connection = self.connection().await?;
        let (protocol, version) = connection.versions();
        let tools = connection.tools().await?;
        let resources = connection.has_resources();
        Ok(Pin { server: self.settings.identity(), protocol, version, resources, tools })
    }

    /// Lets the user sign in to a server with a URL: finds its authorization server, shows where to
    /// sign in, waits until the browser is redirected to this machine, at most five minutes, and keeps
    /// the tokens.
    ///
    /// # Errors
    /// If the server has no URL, a part of the sign-in violates the rules, or the user denies it.
    pub async fn sign_in(&self, sign_in: &SignIn<'_>) -> Result<SignedIn, ServerError> {
        let (url, client, access) = self.access()?;
        let failed = |why: String| ServerError::sign_in(&self.name, &why);
        let challenge = client.challenge(url).await.map_err(|error| failed(error.to_string()))?;
        access.sign_in(&challenge, sign_in).await.map_err(failed)
    }

    /// Removes the tokens of the user's sign-in, and revokes them if the authorization server can.
    /// Returns false if there are none.
    ///
    /// # Errors
    /// If the tokens cannot be removed or not be revoked.
    pub async fn sign_out(&self) -> Result<bool, ServerError> {
        let (.., access) = self.access()?;
        access.sign_out().await.map_err(|why| ServerError::sign_in(&self.name, &why))
    }

    /// Returns the server's URL, and the client with the tokens of a sign-in.
    fn access(&self) -> Result<(&str, &EgressHttp, &Access), ServerError> {
        let failed = |why: &str| ServerError::sign_in(&self.name, why);
        match &self.way {
            Err(why) => Err(failed(why)),
            Ok(Way::Process(_)) => Err(failed("it is a command, and only a server with `url` can")),
            Ok(Way::Http { url, client }) => match client.access() {
                Some(access) => Ok((url, client, access)),
                None if self.settings.headers.is_empty() => {
                    Err(failed("there is no folder for its tokens"))
                }
                None => Err(failed("`headers` of its settings have a fixed token")),
            },
        }
    }

    /// Calls a tool by the name of its program.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> Result<String, Failure> {
        let tool = self.accepted.read().tools.get(name).cloned();
        let tool = tool.ok_or_else(|| ServerError::unknown_tool(&self.name, name))?;
        let fields: Map<String, Json> = match tool.program.read(arguments)? {
            Json::Object(fields) => fields,
            _ => Map::new(),
        };
        match tool.ask {
            Ask::Tool => {
                let connection = self.checked_connection(&tool.definition).await?;
                let called = connection.call(&tool.definition.name, fields).await?;
                Ok(result::text(&self.name, &tool, called)?)
            }
            Ask::Resources => Ok(self.connection().await?.resources().await?),
            Ask::Resource => {
                let uri = fields.get("uri").and_then(Json::as_str).unwrap_or_default();
                Ok(self.connection().await?.read(uri).await?)
            }
        }
    }

    /// Returns the text of one of the server's prompts.
    ///
    /// # Errors
    /// If the server cannot be used, or has no such prompt.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Json>,
    ) -> Result<String, ServerError> {
        self.connection().await?.prompt(name, arguments).await
    }

    /// Returns the connection if the tool is the accepted one.
    async fn checked_connection(
        &self,
        tool: &ToolDefinition,
    ) -> Result<Arc<Connection>, ServerError> {
        let connection = self.connection().await?;
        let mut state = self.state.lock().await;
        if let Some(now) = connection.changed_tools().await? {
            state.changes = self.changes(&now);
        }
        match state.changes.iter().find(|change| change.tool() == tool.name) {
            Some(Change::Removed(name)) => Err(ServerError::changed(&self.name, name, "removed")),
            Some(_) => Err(ServerError::changed(&self.name, &tool.name, "changed")),
            None => Ok(connection),
        }
    }

    fn changes(&self, now: &[ToolDefinition]) -> Vec<Change> {
        self.accepted.read().pin.as_ref().map(|pin| pin.changes(now)).unwrap_or_default()
    }

    /// Returns the open connection, or opens one. A server that failed several times in a row is left
    /// alone for a while.
    async fn connection(&self) -> Result<Arc<Connection>, ServerError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.as_ref().filter(|one| !one.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        state.connection = None;
        if let Some(until) = state.resting {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                let seconds = left.as_secs_f64().ceil();
                return Err(ServerError::resting(&self.name, state.failures, seconds, &state.last));
            }
            (state.resting, state.failures) = (None, 0);
        }
        let opened = self.open().await;
        match opened {
            Ok((connection, changes)) => {
                (state.failures, state.changes) = (0, changes);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                state.failures += 1;
                state.last = error.to_string();
                if state.failures >= MAX_FAILURES {
                    state.resting = Some(Instant::now() + REST);
                }
                Err(error)
            }
        }
    }

    async fn open(&self) -> Result<(Arc<Connection>, Vec<Change>), ServerError> {
        let way = self.way.as_ref().map_err(|why| ServerError::not_started(&self.name, why))?;
        let pin = self.pin();
        let known = pin.as_ref().map(|pin| pin.protocol.as_str());
        let timeout = self.settings.timeout();
        let connection = Connection::open(&self.name, way, known, timeout).await?;
        let changes = match pin {
            Some(_) => self.changes(&connection.tools().await?),
            None => Vec::new(),
        };
        Ok((Arc::new(connection), changes))
    }
}
