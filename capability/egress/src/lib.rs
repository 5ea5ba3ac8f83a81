//! The only way to the network: every request from programs, tools and the model client goes
//! through this crate.
//!
//! A program's request becomes an [`Outgoing`] request through a [`Passage`]. The passage asks the
//! run's guard, denies a request that contains a secret, and replaces references to secrets with
//! their values. Only a passage creates an `Outgoing`, and a program cannot send anything else. The
//! response is an [`Incoming`], in which secrets have been replaced with references again. The
//! operator's own clients reach one origin each, through an [`EndpointClient`].
//!
//! A request is allowed if its scheme is HTTP or HTTPS, its URL contains no credentials, and its
//! host is public or allowed by the operator. A name is resolved once and every address is checked.
//! The connection goes to a checked address, while `Host` and SNI keep the name. Every redirect is
//! a new request. Size and time are limited. A program's request takes no proxy, certificates, cookies
//! or credentials from the environment; the operator's endpoints use its proxies and certificates.
//!
//! ```
//! use wattle_egress::{Egress, Policy};
//!
//! let open = Egress::new(Policy::default());
//! assert!(open.check("https://example.com/").is_ok());
//! let refusal = open.check("http://127.1:8080/").unwrap_err();
//! assert!(refusal.is_refusal());
//! assert_eq!(
//!     refusal.to_string(),
//!     "refused: 127.0.0.1 is a loopback address; `--allow-host 127.0.0.1:8080` would permit it",
//! );
//!
//! let allow = vec!["127.0.0.1:8080".parse().unwrap()];
//! let local = Egress::new(Policy { allow, ..Policy::default() });
//! assert!(local.check("http://127.1:8080/").is_ok());
//! ```
//!
//! # Modules
//! Each module imports only modules listed above it.
//! - `address`, `host`, `error`, `policy`, `resolve`: the rules for hosts and addresses.
//! - `environment`: the proxies and certificates of the environment.
//! - `client`: the HTTP client.
//! - `request`, `redirect`: a request and its redirects.
//! - `secrets`: references to secrets, and the removal of secrets from responses.
//! - `exchange`: the exchange of a request and its response, within the limits.
//! - `passage`: the checks on a program's requests, and the trait `Backend`.
//! - `egress`, `endpoint`, `backend`: the clients for programs and for the operator.

mod address;
mod backend;
mod client;
mod egress;
mod endpoint;
mod environment;
mod error;
mod exchange;
mod host;
mod passage;
mod policy;
mod redirect;
mod request;
mod resolve;
pub mod secrets;

pub use address::{Class, classify, is_loopback};
pub use client::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use egress::Egress;
pub use endpoint::EndpointClient;
pub use environment::Environment;
pub use error::{EgressError, EgressErrorKind};
pub use exchange::StreamedResponse;
pub use host::{DomainPattern, HostRule, RuleError};
pub use passage::{Backend, Incoming, Outgoing, Passage};
pub use policy::{Limits, Policy};
pub use request::{Request, Response};
pub use resolve::{Resolver, SystemResolver};
pub use url::Url;
