//! The way out of everything that leaves: programs, tools and the model's client all take it.
//!
//! A program's request becomes an [`Outgoing`] by a [`Passage`], which asks the run's guard, refuses secrets that the program spells
//! itself, and puts in those that it refers to. Nothing else makes one, and nothing else is sent; what comes back is [`Incoming`],
//! cleaned of secrets. The operator's own clients reach one origin each, by an [`EndpointClient`].
//!
//! A request passes when its scheme is http or https, its URL carries no credentials, and its host is public or
//! named by the operator. A name is looked up once, every address is checked, and the connection goes to a checked
//! address while `Host` and SNI stay the name's. Every redirect is a new request. Size and time are bounded.
//! Nothing is taken from the environment: no proxy, no cookie, no credential.
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
//! let local = Egress::new(Policy { allow: vec!["127.0.0.1:8080".parse().unwrap()], ..Policy::default() });
//! assert!(local.check("http://127.1:8080/").is_ok());
//! ```

mod address;
pub mod backend;
mod endpoint;
mod error;
mod passage;
mod policy;
mod redirect;
mod resolve;
pub mod secrets;
mod wire;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

pub use address::{Class, classify};
pub use endpoint::EndpointClient;
pub use error::{EgressError, EgressErrorKind, RuleError};
pub use passage::{Incoming, Outgoing, Passage};
pub use policy::{DomainPattern, HostRule, Limits, Policy};
pub use resolve::{Resolver, SystemResolver};
pub use url::Url;
pub use wire::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::secrets::{CleanStream, Cleaner};
use policy::{Reach, Target};
use redirect::Hop;
use wire::Clients;

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
    pub async fn send(&self, outgoing: &Outgoing) -> Result<Response, EgressError> {
        self.start(outgoing).await?.collect().await
    }

    /// Sends a request, follows redirects as far as the run's guard permits, and returns the response as soon as its head is
    /// there. Head, body and errors are cleaned of secrets.
    ///
    /// # Errors
    /// Where the policy refuses the URL, an address of its host, or a redirect; where nothing comes within the time
    /// limit, or there are too many redirects.
    pub async fn start(&self, outgoing: &Outgoing) -> Result<Streamed, EgressError> {
        match self.follow(outgoing).await {
            Ok(answer) => Ok(answer.cleaned_by(&outgoing.cleaner())),
            Err(why) => {
                let clean = outgoing.cleaner().clean_text(&why.to_string());
                Err(why.with_text(clean))
            }
        }
    }

    async fn follow(&self, outgoing: &Outgoing) -> Result<Streamed, EgressError> {
        let limits = self.policy.limits;
        let exchange = Exchange::begin(limits);
        let mut hop = Hop::first(outgoing.request().clone().into())?;
        let mut followed = 0;
        loop {
            let reach = self.policy.admit(&Target::of(&hop.url)?)?;
            let answer = exchange.perform(&self.clients, reach, &hop).await?;
            match hop.next(answer.status, &answer.headers)? {
                None => return Ok(answer),
                Some(next) if followed == limits.redirects => {
                    return Err(EgressError::redirects(limits.redirects, &next.url));
                }
                Some(next) => {
                    outgoing.admit(&next.url).map_err(|why| EgressError::not_admitted(&next.url, &why))?;
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

    async fn perform(self, clients: &Clients, reach: Reach, hop: &Hop) -> Result<Streamed, EgressError> {
        let Hop { url, method, headers, body } = hop.clone();
        let sent = clients.send(reach, (method, url.clone()), headers, body, self.limits.time);
        match timeout_at(self.deadline, sent).await {
            Err(_) => Err(EgressError::timeout(&url, self.limits.time)),
            Ok(Err(why)) => Err(why),
            Ok(Ok(mut answer)) => Ok(Streamed {
                status: answer.status(),
                headers: answer.take_headers(),
                url,
                received: 0,
                exchange: self,
                answer,
                cleaner: Cleaner::idle(),
                clean: Cleaner::idle().stream(),
                ended: false,
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
    answer: wire::Answer,
    cleaner: Cleaner,
    clean: CleanStream,
    ended: bool,
}

impl Streamed {
    fn cleaned_by(mut self, cleaner: &Cleaner) -> Streamed {
        cleaner.clean_headers(&mut self.headers);
        (self.clean, self.cleaner) = (cleaner.stream(), cleaner.clone());
        self
    }

    /// Returns the next piece of the body, decompressed and cleaned of secrets; `None` at its end. What may be the beginning of a
    /// secret is held back until the next piece decides.
    ///
    /// # Errors
    /// Where the connection breaks, or the body passes the size or the time limit.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let mut clean = Vec::new();
        while clean.is_empty() && !self.ended {
            match self.receive().await {
                Ok(Some(piece)) => self.clean.push(&piece, &mut clean),
                Ok(None) => {
                    self.clean.finish(&mut clean);
                    self.ended = true;
                }
                Err(why) => {
                    let text = self.cleaner.clean_text(&why.to_string());
                    return Err(why.with_text(text));
                }
            }
        }
        Ok((!clean.is_empty()).then(|| clean.into()))
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, EgressError> {
        let Limits { body, time, .. } = self.exchange.limits;
        let piece = match timeout_at(self.exchange.deadline, self.answer.chunk(&self.url, time)).await {
            Err(_) => return Err(EgressError::timeout(&self.url, time)),
            Ok(piece) => piece?,
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
