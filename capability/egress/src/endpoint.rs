//! The way to one configured endpoint (a model, images, search), for its own client only.

use std::sync::Arc;

use url::Url;

use super::error::EgressError;
use super::policy::{Limits, Reach, Target};
use super::redirect::{Hop, location, parse};
use super::wire::Clients;
use super::{Exchange, Request, Response, Streamed};
use crate::secrets::Cleaner;

/// Sends requests to one origin, the one that the operator configured, and to no other.
///
/// It reaches that origin even where it is not public (a model on this machine), with every other rule of the
/// guard in force. Redirects are not followed: an endpoint that moved is a setting to correct.
#[derive(Clone)]
pub struct EndpointClient {
    clients: Arc<Clients>,
    origin: Url,
    limits: Limits,
}

impl EndpointClient {
    pub(super) fn new(clients: Arc<Clients>, url: &Url, limits: Limits) -> Result<Self, EgressError> {
        let mut origin = parse(url.as_str())?;
        Target::of(&origin)?;
        origin.set_path("");
        origin.set_query(None);
        Ok(Self { clients, origin, limits })
    }

    /// Gives the same endpoint within other bounds; the number of redirects has no meaning here.
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// As [`EndpointClient::start`]; also where the body breaks off, is too large or too slow.
    pub async fn send(&self, request: Request) -> Result<Response, EgressError> {
        self.start(request).await?.collect().await
    }

    /// As [`EndpointClient::send`], where the response is cleaned.
    pub(super) async fn send_cleaned(&self, request: Request, cleaner: &Cleaner) -> Result<Response, EgressError> {
        self.start(request).await?.cleaned_by(cleaner).collect().await
    }

    /// Sends a request and gives the response as soon as its head is there.
    ///
    /// # Errors
    /// Where the URL lies outside the endpoint, no response comes within the time limit, or it is a redirect.
    pub async fn start(&self, request: Request) -> Result<Streamed, EgressError> {
        let hop = Hop::first(request)?;
        if hop.url.origin() != self.origin.origin() {
            return Err(EgressError::other_origin(&hop.url, &self.origin.origin().ascii_serialization()));
        }
        let exchange = Exchange::begin(self.limits);
        let answer = exchange.perform(&self.clients, Reach::Named, &hop).await?;
        match location(answer.status, &answer.headers) {
            Some(to) => Err(EgressError::endpoint_moved(&hop.url, to.unwrap_or_default())),
            None => Ok(answer),
        }
    }
}

impl std::fmt::Debug for EndpointClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointClient").field("origin", &self.origin.as_str()).field("limits", &self.limits).finish()
    }
}
