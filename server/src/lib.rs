//! The HTTP server of the Wattle agent runtime: the only crate that depends on an HTTP server
//! framework.
//!
//! | request | answer |
//! |---|---|
//! | `POST /chat {message, session_id?, exec?}` | the run's events as an SSE stream that ends with `response` or `error` |
//! | `GET /healthz` | `{"status":"ok",…}`, without a token |
//!
//! All routes but `/healthz` require the bearer token. An error is always JSON:
//! `{"error":{"code","message","hint","retryable"}}`. `docs/http.md` is the reference.
//!
//! A run over HTTP is a plain run unless the operator allows trusted ones: its overlay has no
//! workdir below it, and the host's egress policy limits its network access.
//!
//! In reading order: the [`Server`] accepts connections and serves each within its limits
//! (`connection`, `wire`). A request passes the gate (`Host`, `Origin`) and the token check, then
//! reaches its route. `chat` waits for the session's turn and runs the message; `sse` sends the
//! events.
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

mod app;
mod auth;
mod body;
mod chat;
mod connection;
mod error;
mod gate;
mod names;
mod request;
mod resume;
mod routes;
mod server;
mod sessions;
mod settings;
mod sse;
mod token;
mod wire;

pub use app::App;
pub use error::ServeError;
pub use names::{HostName, NameError, Origin};
pub use server::Server;
pub use settings::{Limits, ServerSettings};
pub use token::{Token, TokenError};
