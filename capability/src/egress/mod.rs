//! The guard of everything that leaves: programs, tools and the model's client all go through it.
//!
//! A request passes when its scheme is http or https, its URL carries no credentials, and its host is public or
//! named by the operator. A name is looked up once, every address is checked, and the connection goes to a checked
//! address while `Host` and SNI stay the name's. Every redirect is a new request. Size and time are bounded.
//! Nothing is taken from the environment: no proxy, no cookie, no credential.
//!
//! ```
//! use wattle_capability::egress::{Egress, Policy};
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
//! let local = Egress::new(Policy { allow: vec!["127.0.0.1:8080".parse().unwrap()], ..Policy::default() });
//! assert!(local.check("http://127.1:8080/").is_ok());
//! ```

mod address;
mod endpoint;
mod error;
mod policy;
mod redirect;
mod resolve;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

pub use address::{Class, classify};
pub use endpoint::EndpointClient;
pub use error::{EgressError, EgressErrorKind, RuleError};
pub use policy::{DomainPattern, HostRule, Limits, Policy};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};
pub use resolve::{Resolver, SystemResolver};
pub use url::Url;

use policy::Target;
use redirect::Hop;
use resolve::Clients;

/// Sends requests within a policy. Clones are cheap and share their connections.
#[derive(Clone)]
pub struct Egress {
    clients: Arc<Clients>,
    policy: Arc<Policy>,
}

/// Is what to ask of a server. Framing, `Host` and connection headers are the guard's own and cannot be given.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method; CONNECT and TRACE are not sent.
    pub method: Method,
    /// An absolute http or https URL.
    pub url: String,
    /// Headers; a value marked as sensitive does not go along when a redirect leads to another origin.
    pub headers: HeaderMap,
    /// The body, empty for none.
    pub body: Bytes,
}

impl Request {
    /// Makes a GET request without headers.
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: Method::GET, url: url.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// Makes a POST request without headers.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, url: url.into(), headers: HeaderMap::new(), body: body.into() }
    }
}

/// Is a whole response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status of the last hop.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, decompressed.
    pub body: Bytes,
    /// The URL that it came from, after redirects.
    pub url: Url,
}

impl Egress {
    /// Makes a guard that asks the operating system for addresses.
    pub fn new(policy: Policy) -> Self {
        Self::with_resolver(policy, SystemResolver)
    }

    /// Makes a guard that asks `resolver` for addresses.
    pub fn with_resolver(policy: Policy, resolver: impl Resolver) -> Self {
        Self { clients: Arc::new(Clients::new(Arc::new(resolver))), policy: Arc::new(policy) }
    }

    /// Gives a guard with another policy that shares this one's resolver and connections.
    pub fn with_policy(&self, policy: Policy) -> Self {
        Self { clients: Arc::clone(&self.clients), policy: Arc::new(policy) }
    }

    /// Tells the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Checks a URL as far as that needs no lookup: a name that passes may still resolve to a refused address.
    ///
    /// # Errors
    /// Where a request for the URL would be refused, or the URL cannot be read.
    pub fn check(&self, url: &str) -> Result<(), EgressError> {
        self.policy.admit(&Target::of(&redirect::parse(url)?)?).map(drop)
    }

    /// Gives the way to a configured endpoint: that scheme, host and port, public or not, and nothing else.
    ///
    /// # Errors
    /// Where the URL has no host, another scheme than http or https, or credentials in it.
    pub fn endpoint(&self, url: &Url) -> Result<EndpointClient, EgressError> {
        EndpointClient::new(Arc::clone(&self.clients), url, self.policy.limits)
    }

    /// Sends a request, follows redirects, and reads the whole response. A status of 400 and above is a response too.
    ///
    /// # Errors
    /// As [`Egress::start`]; also where the body breaks off, is too large or too slow.
    pub async fn send(&self, request: Request) -> Result<Response, EgressError> {
        self.start(request).await?.collect().await
    }

    /// Sends a request, follows redirects, and gives the response as soon as its head is there.
    ///
    /// # Errors
    /// Where the policy refuses the URL, an address of its host, or a redirect; where nothing comes within the time
    /// limit, or there are too many redirects.
    pub async fn start(&self, request: Request) -> Result<Streamed, EgressError> {
        self.start_within(request, &|_| Ok(())).await
    }

    /// As [`Egress::send`], with rules of the caller's own: `admit` is asked about each URL that a redirect leads to.
    ///
    /// # Errors
    /// As [`Egress::send`], and where `admit` says why not.
    pub async fn send_within(
        &self,
        request: Request,
        admit: &(dyn Fn(&Url) -> Result<(), String> + Send + Sync),
    ) -> Result<Response, EgressError> {
        self.start_within(request, admit).await?.collect().await
    }

    async fn start_within(
        &self,
        request: Request,
        admit: &(dyn Fn(&Url) -> Result<(), String> + Send + Sync),
    ) -> Result<Streamed, EgressError> {
        let limits = self.policy.limits;
        let exchange = Exchange::begin(limits);
        let mut hop = Hop::first(request)?;
        let mut followed = 0;
        loop {
            let reach = self.policy.admit(&Target::of(&hop.url)?)?;
            let answer = exchange.perform(self.clients.of(reach, &hop.url)?, &hop).await?;
            match hop.next(answer.status, &answer.headers)? {
                None => return Ok(answer),
                Some(next) if followed == limits.redirects => {
                    return Err(EgressError::redirects(limits.redirects, &next.url));
                }
                Some(next) => {
                    admit(&next.url).map_err(|why| EgressError::not_admitted(&next.url, &why))?;
                    hop = next;
                }
            }
            followed += 1;
        }
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Bounds one request over all its hops, until the body's last byte.
#[derive(Clone, Copy)]
struct Exchange {
    limits: Limits,
    deadline: Instant,
}

impl Exchange {
    fn begin(limits: Limits) -> Self {
        // A limit beyond what the clock can hold is no limit; a century does as well.
        const CENTURY: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 86_400);
        Self { limits, deadline: Instant::now() + limits.time.min(CENTURY) }
    }

    async fn perform(self, client: &reqwest::Client, hop: &Hop) -> Result<Streamed, EgressError> {
        let url = hop.url.clone();
        match timeout_at(self.deadline, client.execute(hop.to_http())).await {
            Err(_) => Err(EgressError::timeout(&url, self.limits.time)),
            Ok(Err(why)) => Err(EgressError::from_http(&url, self.limits.time, &why)),
            Ok(Ok(mut answer)) => Ok(Streamed {
                status: answer.status(),
                headers: std::mem::take(answer.headers_mut()),
                url,
                received: 0,
                exchange: self,
                answer,
            }),
        }
    }
}

/// Is a response whose body is read piece by piece, within the request's bounds.
#[derive(Debug)]
pub struct Streamed {
    /// The status of the last hop.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The URL that it came from, after redirects.
    pub url: Url,
    received: usize,
    exchange: Exchange,
    answer: reqwest::Response,
}

impl Streamed {
    /// Gives the next piece of the body, decompressed; `None` at its end.
    ///
    /// # Errors
    /// Where the connection breaks, or the body passes the size or the time limit.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let Limits { body, time, .. } = self.exchange.limits;
        let piece = match timeout_at(self.exchange.deadline, self.answer.chunk()).await {
            Err(_) => return Err(EgressError::timeout(&self.url, time)),
            Ok(Err(why)) => return Err(EgressError::from_http(&self.url, time, &why)),
            Ok(Ok(piece)) => piece,
        };
        self.received = self.received.saturating_add(piece.as_ref().map_or(0, Bytes::len));
        if self.received > body {
            return Err(EgressError::too_large(&self.url, body));
        }
        Ok(piece)
    }

    async fn collect(mut self) -> Result<Response, EgressError> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Response { status: self.status, headers: self.headers, body: body.freeze(), url: self.url })
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.limits.fmt(f)
    }
}
