//! The Model Context Protocol, both ways: the tools of MCP servers as programs of the catalog, and
//! the programs of this deployment as tools of an MCP server.
//!
//! A [`ServerSettings`] says how a server is reached. Its tools are *pinned*: [`Pins`] keeps their
//! descriptions and schemas as they were when the operator accepted them, so that a run knows the
//! tools before the server is started, and a server cannot change them unnoticed. [`Servers`]
//! holds the servers of a deployment: [`Servers::programs`] are the catalog programs of all tools,
//! and `Servers` is the [`ToolBox`](wattle_agent::host::capability::tool::ToolBox) that they call.

mod client_model;
mod connection;
mod definition;
mod error;
mod gateway;
mod http;
mod lines;
mod oauth;
mod pages;
mod pattern;
mod pins;
mod result;
mod rounds;
mod server;
mod servers;
mod settings;
mod upstream;

pub use client_model::{ClientCall, ClientModel};
pub use connection::{Launch, Launched, Launcher};
pub use definition::{ToolDefinition, ToolProblem};
pub use error::ServerError;
pub use gateway::{CallEnd, Deployment, Gateway, LANGUAGE, Performing, TaskAgent, Underway};
pub use oauth::{SignIn, SignInLink, SignedIn, Tokens};
pub use pages::{check, page};
pub use pattern::ToolPattern;
pub use pins::{Change, Pin, Pins};
pub use server::{Server, ServerStatus};
pub use servers::{Servers, ServersParts};
pub use settings::{ServerSettings, Transport, is_server_name};
pub use upstream::{UpstreamError, read_upstream};
