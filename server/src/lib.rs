//! The HTTP server of the Wattle agent runtime: the only crate that depends on an HTTP server
//! framework.
//!
//! Each route is an entry in [`api`](crate::document): its handler, its scope, its types and its
//! description. The router, the token check, the metrics and the OpenAPI document are derived from
//! these entries. All routes except those for the page, the health checks and the OpenAPI document
//! require a bearer token, which belongs to a tenant. An error is always JSON:
//! `{"error":{"code","message","hint","retryable"}}`. `docs/http.md` is the reference.
//!
//! Runs belong to the run service of `wattle_agent`, not to a connection: a client may disconnect
//! and follow the run again later. A run over HTTP is a plain run unless the operator allows
//! trusted runs and the request asks for one. The files of a plain run are those of its session,
//! and the host's egress policy limits its network access.
//!
//! The [`Server`] accepts connections and serves each within its limits (`connection`, `wire`). A
//! request passes the gate (`Host`, `Origin`) and the token check, and then reaches its route in
//! `api`. [`App`] creates the components of runs; `stream` sends their events.
//!
//! ```no_run
//! # use wattle_server::{App, Server, ServerSettings, Token};
//! # async fn serve(app: App) -> Result<(), Box<dyn std::error::Error>> {
//! let settings = ServerSettings::new(([127, 0, 0, 1], 8787).into(), Token::generate()?);
//! let server = Server::bind(settings, app).await?;
//! println!("listening on http://{}", server.local_addr());
//! server.run(tokio_util::sync::CancellationToken::new()).await;
//! # Ok(())
//! # }
//! ```

mod api;
mod app;
mod archive;
mod attempts;
mod auth;
mod body;
mod caller;
mod connection;
mod error;
mod field;
mod gate;
mod memory;
mod metrics;
mod names;
mod nearest;
mod openai;
mod openapi;
mod operator;
mod origin;
mod page;
mod path;
mod query;
mod quota;
mod revoked;
mod route;
mod router;
mod seat;
mod server;
mod settings;
mod start;
mod state;
mod stream;
mod token;
mod wire;

pub use app::{App, OpenTenant, TenantParts};
pub use error::ServeError;
pub use names::{HostName, NameError, Origin};
pub use operator::{Operator, SettingLine};
pub use router::document;
pub use server::Server;
pub use settings::{Limits, ServerSettings};
pub use token::{Token, TokenError};
