//! The servers of a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue};
use wattle_agent::host::capability::PortFuture;
use wattle_agent::host::capability::egress::{Egress, Url};
use wattle_agent::host::capability::tool::ToolBox;
use wattle_agent::host::catalog::Entry;
use wattle_agent::host::rt::{Code, Failure};

use crate::connection::{Launcher, Way};
use crate::http::EgressHttp;
use crate::oauth::Access;
use crate::settings::filled;
use crate::{Pin, Pins, Server, ServerError, ServerSettings, Tokens, Transport};

/// The configured servers, by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Servers(Arc<BTreeMap<String, Arc<Server>>>);

/// What the servers of a deployment are made of.
pub struct ServersParts<'a> {
    /// The settings of each server.
    pub settings: BTreeMap<String, ServerSettings>,
    /// The folder of the accepted tools, or `None` to accept them anew in each process.
    pub pins: Option<&'a Pins>,
    /// The egress through which servers with a URL are asked.
    pub egress: &'a Egress,
    /// The tokens of the users' sign-ins, or `None` if they cannot be kept.
    pub tokens: Option<Tokens>,
    /// The port that starts processes.
    pub launcher: Option<Arc<dyn Launcher>>,
    /// Returns the value of an environment variable, or of a secret if the flag is true.
    pub value: &'a dyn Fn(&str, bool) -> Option<String>,
}

impl Servers {
    /// Creates the servers. None of them is started. A server whose settings cannot be used fails
    /// when it is called.
    #[must_use]
    pub fn new(parts: &ServersParts<'_>) -> Servers {
        let server = |(name, settings): (&String, &ServerSettings)| {
            let pin = match parts.pins.map(|pins| pins.load(name)) {
                Some(Ok(pin)) => pin,
                Some(Err(cause)) => {
                    tracing::warn!(%cause, "the accepted tools of an MCP server are ignored");
                    None
                }
                None => None,
            };
            let way = way(name, settings, parts);
            (name.clone(), Arc::new(Server::new(name, settings.clone(), way, pin)))
        };
        Servers(Arc::new(parts.settings.iter().map(server).collect()))
    }

    /// Creates servers that have only accepted tools, for a replay: nothing is called.
    #[must_use]
    pub fn of_pins(pins: BTreeMap<String, Pin>) -> Servers {
        let server = |(name, pin): (String, Pin)| {
            let way = Err("a replay calls no server".to_owned());
            let server = Server::new(&name, ServerSettings::default(), way, None);
            server.accept(pin);
            (name, Arc::new(server))
        };
        Servers(Arc::new(pins.into_iter().map(server).collect()))
    }

    /// Keeps the tools that are offered now, and returns their hashes by the servers' names. What
    /// cannot be kept is left out, with a warning.
    #[must_use]
    pub fn kept_in(&self, pins: &Pins) -> BTreeMap<String, String> {
        let offered = self.iter().filter_map(|server| Some((server.name(), server.offered()?)));
        let kept = offered.filter_map(|(name, pin)| match pins.keep(&pin) {
            Ok(hash) => Some((name.to_owned(), hash)),
            Err(cause) => {
                tracing::warn!(%cause, "the tools of a run could not be kept for its replay");
                None
            }
        });
        kept.collect()
    }

    /// Returns true if no server is configured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the servers, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Server>> {
        self.0.values()
    }

    /// Returns the server with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Server>> {
        self.0.get(name)
    }

    /// Returns the servers that all tenants share.
    #[must_use]
    pub fn shared(&self) -> Servers {
        self.filtered(|server| server.settings().shared)
    }

    /// Returns the servers with these names, or all servers if there are no names.
    #[must_use]
    pub fn among(&self, names: &[String]) -> Servers {
        self.filtered(|server| names.is_empty() || names.iter().any(|name| name == server.name()))
    }

    fn filtered(&self, is_kept: impl Fn(&Server) -> bool) -> Servers {
        let kept = self.0.iter().filter(|(_, server)| is_kept(server));
        Servers(Arc::new(kept.map(|(name, server)| (name.clone(), Arc::clone(server))).collect()))
    }

    /// Connects to all servers at the same time, and returns their tools as they are now.
    pub async fn look(&self) -> Vec<(Arc<Server>, Result<Pin, ServerError>)> {
        look(self.iter()).await
    }

    /// Accepts the tools of the servers that have never been accepted, all at the same time, and
    /// keeps them in `pins`. Returns the servers that were accepted, and the errors of the others.
    pub async fn accept_new(&self, pins: Option<&Pins>) -> (Vec<Arc<Server>>, Vec<ServerError>) {
        let new = self.iter().filter(|server| server.pin().is_none());
        let (mut accepted, mut errors) = (Vec::new(), Vec::new());
        for (server, pin) in look(new).await {
            match pin {
                Ok(pin) => {
                    if let Some(Err(cause)) = pins.map(|pins| pins.save(server.name(), &pin)) {
                        tracing::warn!(%cause, "the tools of an MCP server could not be kept");
                    }
                    server.accept(pin);
                    accepted.push(server);
                }
                Err(error) => errors.push(error),
            }
        }
        (accepted, errors)
    }

    /// Returns the catalog programs of all accepted tools.
    #[must_use]
    pub fn programs(&self) -> Vec<Entry> {
        self.iter().flat_map(|server| server.programs()).collect()
    }

    /// Returns the names of the programs whose tools ask for care by their own hints.
    #[must_use]
    pub fn careful(&self) -> Vec<String> {
        let tools = self.iter().flat_map(|server| server.tools());
        let careful = tools.filter(|tool| tool.definition.needs_care());
        careful.map(|tool| tool.program.name().to_string()).collect()
    }

    /// Returns the server whose tool a program calls.
    fn of_program(&self, program: &str) -> Option<&Arc<Server>> {
        let prefix = program.split_once('.')?.0;
        self.iter().find(|server| server.prefix() == prefix)
    }
}

async fn look(
    servers: impl Iterator<Item = &Arc<Server>>,
) -> Vec<(Arc<Server>, Result<Pin, ServerError>)> {
    let looks = servers.map(|server| async move { (Arc::clone(server), server.look().await) });
    join_all(looks).await
}

impl ToolBox for Servers {
    fn call(&self, name: String, arguments: String) -> PortFuture<'_, String> {
        Box::pin(async move {
            let Some(server) = self.of_program(&name) else {
                let reason = format!("no MCP server has the tool `{name}`");
                return Err(Failure::new(Code::ENOENT, reason));
            };
            server.call(&name, &arguments).await
        })
    }
}

fn way(server: &str, settings: &ServerSettings, parts: &ServersParts<'_>) -> Result<Way, String> {
    match settings.check()? {
        Transport::Process => match &parts.launcher {
            Some(launcher) => Ok(Way::Process(Arc::clone(launcher))),
            None => Err("this command starts no processes of servers".to_owned()),
        },
        Transport::Http => {
            let url = settings.url.as_deref().unwrap_or_default();
            let url = Url::parse(url).map_err(|why| format!("`url`: {why}"))?;
            let client = parts.egress.endpoint(&url).map_err(|why| why.to_string())?;
            let mut headers = HeaderMap::new();
            for (name, value) in &settings.headers {
                let value = filled(value, parts.value)?;
                let bad = || format!("the header `{name}` is invalid");
                let key: HeaderName = name.parse().map_err(|_| bad())?;
                let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
                value.set_sensitive(true);
                headers.insert(key, value);
            }
            // A fixed token replaces the sign-in.
            let tokens = parts.tokens.clone();
            let tokens = tokens.filter(|_| !headers.contains_key(http::header::AUTHORIZATION));
            let id = settings.client_id.clone();
            let access = tokens.map(|tokens| Access::new(server, &url, id, tokens, parts.egress));
            let client = Box::new(EgressHttp::new(client, headers, access));
            Ok(Way::Http { url: url.to_string(), client })
        }
    }
}
