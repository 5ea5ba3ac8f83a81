//! The client that sends requests on behalf of programs.

use std::sync::Arc;

use url::Url;

use crate::client::Clients;
use crate::endpoint::EndpointClient;
use crate::environment::Environment;
use crate::error::EgressError;
use crate::exchange::{Exchange, StreamedResponse};
use crate::passage::Outgoing;
use crate::policy::Policy;
use crate::redirect::{self, Hop};
use crate::request::Response;
use crate::resolve::{Resolver, SystemResolver};

/// A client that sends only the requests that its policy allows. Clones are cheap and share their
/// connections.
#[derive(Clone)]
pub struct Egress {
    clients: Arc<Clients>,
    policy: Arc<Policy>,
}

impl Egress {
    /// Creates a client that resolves names with the operating system's resolver.
    pub fn new(policy: Policy) -> Self {
        Self::with_resolver(policy, SystemResolver)
    }

    /// Creates a client that resolves names with `resolver`.
    pub fn with_resolver(policy: Policy, resolver: impl Resolver) -> Self {
        Self { clients: Arc::new(Clients::new(Arc::new(resolver))), policy: Arc::new(policy) }
    }

    /// Returns a client whose endpoints use the proxies and certificates of this environment,
    /// instead of those of the process.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { clients: Arc::new(self.clients.with_environment(environment)), ..self }
    }

    /// Returns a client that shares the resolver and the connections but has another policy.
    pub fn with_policy(&self, policy: Policy) -> Self {
        Self { clients: Arc::clone(&self.clients), policy: Arc::new(policy) }
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Checks a URL without resolving its host. An allowed name may still resolve to a denied
    /// address.
    ///
    /// # Errors
    /// If a request for the URL would be denied, or the URL is invalid.
    pub fn check(&self, url: &str) -> Result<(), EgressError> {
        self.policy.admit(&redirect::parse(url)?).map(drop)
    }

    /// Returns a client for a configured endpoint. The client sends requests only to the origin of
    /// `url` (its scheme, host and port), even if the host is not public.
    ///
    /// # Errors
    /// If the URL has no host, its scheme is neither HTTP nor HTTPS, or it contains credentials. Also
    /// if the environment names an invalid proxy.
    pub fn endpoint(&self, url: &Url) -> Result<EndpointClient, EgressError> {
        self.environment().check()?;
        EndpointClient::new(Arc::clone(&self.clients), url, self.policy.limits)
    }

    /// Returns the environment whose proxies and certificates apply to endpoints.
    pub fn environment(&self) -> &Environment {
        self.clients.environment()
    }

    /// Sends a request, follows redirects, and reads the whole response. A response with a status
    /// of 400 or above is not an error.
    ///
    /// # Errors
    /// The same as for [`Egress::start`]. Also fails if the body is incomplete, too large or too
    /// slow.
    pub async fn send(&self, outgoing: &Outgoing) -> Result<Response, EgressError> {
        self.start(outgoing).await?.collect().await
    }

    /// Sends a request, follows redirects that the run's guard allows, and returns the response
    /// once its headers have arrived. Secrets in headers, body and errors are replaced with
    /// references.
    ///
    /// # Errors
    /// If the request is invalid, the policy denies the URL or an address of its host, a redirect
    /// is invalid or denied, there are too many redirects, or the connection fails or times out.
    pub async fn start(&self, outgoing: &Outgoing) -> Result<StreamedResponse, EgressError> {
        match self.follow(outgoing).await {
            Ok(response) => Ok(response.cleaned_by(&outgoing.cleaner())),
            Err(why) => {
                let clean = outgoing.cleaner().clean_text(&why.to_string());
                Err(why.with_text(clean))
            }
        }
    }

    async fn follow(&self, outgoing: &Outgoing) -> Result<StreamedResponse, EgressError> {
        let limits = self.policy.limits;
        let exchange = Exchange::start(limits);
        let mut hop = Hop::first(outgoing.request().clone())?;
        let mut followed = 0;
        loop {
            let reach = self.policy.admit(&hop.url)?;
            let response = exchange.perform(&self.clients, reach, &hop).await?;
            match hop.next(response.status, &response.headers)? {
                None => return Ok(response),
                Some(next) if followed == limits.redirects => {
                    return Err(EgressError::redirects(limits.redirects, &next.url));
                }
                Some(next) => {
                    outgoing
                        .admit(&next.url)
                        .map_err(|why| EgressError::not_admitted(&next.url, &why))?;
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
