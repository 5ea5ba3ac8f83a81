//! The exchange of a request and its response, within limits on size and time.

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::client::{Clients, HeaderMap, IncompleteResponse, StatusCode};
use crate::error::EgressError;
use crate::policy::{Limits, Reach};
use crate::redirect::Hop;
use crate::request::Response;
use crate::secrets::{CleanStream, Cleaner};

/// The limits and the deadline of a request, from the first hop to the last byte of the body.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    limits: Limits,
    deadline: Instant,
}

impl Exchange {
    /// Creates an exchange whose time limit starts now.
    pub(crate) fn start(limits: Limits) -> Self {
        // The clock cannot represent every limit, so the limit is at most a century.
        const CENTURY: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 86_400);
        Self { limits, deadline: Instant::now() + limits.time.min(CENTURY) }
    }

    /// Sends one request and waits for the headers of the response.
    pub(crate) async fn perform(
        self,
        clients: &Clients,
        reach: Reach,
        hop: &Hop,
    ) -> Result<StreamedResponse, EgressError> {
        let Hop { url, method, headers, body } = hop.clone();
        let sent = clients.send(reach, method, url.clone(), headers, body, self.limits.time);
        match timeout_at(self.deadline, sent).await {
            Err(_) => Err(EgressError::timeout(&url, self.limits.time)),
            Ok(Err(why)) => Err(why),
            Ok(Ok(mut response)) => Ok(StreamedResponse {
                status: response.status(),
                headers: response.take_headers(),
                url,
                received: 0,
                exchange: self,
                response,
                cleaner: Cleaner::idle(),
                clean: Cleaner::idle().stream(),
                ended: false,
            }),
        }
    }
}

/// A response whose body is read chunk by chunk, within the limits of the request.
#[derive(Debug)]
pub struct StreamedResponse {
    /// The status of the last response.
    pub status: StatusCode,
    /// The headers of the last response.
    pub headers: HeaderMap,
    /// The URL of the last response, after redirects.
    pub url: Url,
    received: usize,
    exchange: Exchange,
    response: IncompleteResponse,
    cleaner: Cleaner,
    clean: CleanStream,
    ended: bool,
}

impl StreamedResponse {
    /// Replaces secrets in the headers immediately, and in each chunk of the body as it is read.
    pub(crate) fn cleaned_by(mut self, cleaner: &Cleaner) -> StreamedResponse {
        cleaner.clean_headers(&mut self.headers);
        (self.clean, self.cleaner) = (cleaner.stream(), cleaner.clone());
        self
    }

    /// Returns the next chunk of the body, decompressed and with secrets replaced, or `None` at the
    /// end. Bytes that may be the start of a secret are held back until more bytes arrive.
    ///
    /// # Errors
    /// If the connection is lost, or the body exceeds the size or the time limit.
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
        let piece =
            match timeout_at(self.exchange.deadline, self.response.chunk(&self.url, time)).await {
                Err(_) => return Err(EgressError::timeout(&self.url, time)),
                Ok(piece) => piece?,
            };
        self.received = self.received.saturating_add(piece.as_ref().map_or(0, Bytes::len));
        if self.received > body {
            return Err(EgressError::too_large(&self.url, body));
        }
        Ok(piece)
    }

    /// Reads the whole body.
    pub(crate) async fn collect(mut self) -> Result<Response, EgressError> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Response { status: self.status, headers: self.headers, body: body.freeze() })
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.limits.fmt(f)
    }
}
