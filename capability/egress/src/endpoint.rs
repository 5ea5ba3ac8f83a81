//! The client for a configured endpoint: a model, an image generator or a search engine.

use std::sync::Arc;

use url::Url;

use crate::client::Clients;
use crate::error::EgressError;
use crate::exchange::{Exchange, StreamedResponse};
use crate::host::Target;
use crate::policy::{Limits, Reach};
use crate::redirect::{Hop, location, parse};
use crate::request::{Request, Response};
use crate::secrets::Cleaner;

/// A client for the one origin that the operator configured.
///
/// The origin need not be public: a model may run on this machine. All other rules apply. Redirects
/// are not followed: if an endpoint moves, the operator must correct its URL. The proxies and
/// certificates of the [`Environment`](crate::Environment) apply.
#[derive(Clone)]
pub struct EndpointClient {
    clients: Arc<Clients>,
    origin: Url,
    limits: Limits,
}

impl EndpointClient {
    pub(crate) fn new(
        clients: Arc<Clients>,
        url: &Url,
        limits: Limits,
    ) -> Result<Self, EgressError> {
        let mut origin = parse(url.as_str())?;
        Target::of(&origin).ok_or_else(|| EgressError::no_host(&origin))?;
        origin.set_path("");
        origin.set_query(None);
        Ok(Self { clients, origin, limits })
    }

    /// Returns a client with the given limits. The limit on redirects has no effect, because
    /// redirects are not followed.
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// The same as for [`EndpointClient::start`]. Also fails if the body is incomplete, too large
    /// or too slow.
    pub async fn send(&self, request: Request) -> Result<Response, EgressError> {
        self.start(request).await?.collect().await
    }

    /// Sends a request and reads the whole response, replacing secrets with references.
    pub(crate) async fn send_cleaned(
        &self,
        request: Request,
        cleaner: &Cleaner,
    ) -> Result<Response, EgressError> {
        self.start(request).await?.cleaned_by(cleaner).collect().await
    }

    /// Sends a request and returns the response once its headers have arrived.
    ///
    /// # Errors
    /// If the request is invalid, the URL's origin differs from the endpoint's, the connection
    /// fails or times out, or the response is a redirect.
    pub async fn start(&self, request: Request) -> Result<StreamedResponse, EgressError> {
        let hop = Hop::first(request)?;
        if hop.url.origin() != self.origin.origin() {
            return Err(EgressError::other_origin(
                &hop.url,
                &self.origin.origin().ascii_serialization(),
            ));
        }
        let exchange = Exchange::start(self.limits);
        let response = exchange.perform(&self.clients, Reach::Endpoint, &hop).await?;
        match location(response.status, &response.headers) {
            Some(to) => Err(EgressError::endpoint_moved(&hop.url, to.unwrap_or_default())),
            None => Ok(response),
        }
    }
}

impl std::fmt::Debug for EndpointClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointClient")
            .field("origin", &self.origin.as_str())
            .field("limits", &self.limits)
            .finish()
    }
}
