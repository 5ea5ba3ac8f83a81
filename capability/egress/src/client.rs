//! The HTTP client. This is the only file in the source tree that uses the HTTP library, and the
//! only one that opens HTTP connections.
//!
//! The client is private to this crate. A request reaches it through
//! [`Egress::start`](super::Egress::start), which takes a request that has passed the guard and the
//! vault, or through an [`EndpointClient`](super::EndpointClient), which reaches one origin.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};

use crate::error::EgressError;
use crate::policy::Reach;
use crate::resolve::{Resolver, check};

/// The HTTP clients: one for each [`Reach`] and scheme, each with its own resolver and its own pool
/// of connections.
///
/// A pooled connection is reused only for requests with the same reach. It therefore always leads
/// to an address that the reach permits, even if the name resolves to other addresses later. Each
/// resolver checks addresses for one reach, so it need not know the port of the request. Plain HTTP
/// has separate clients because it needs no certificates: its clients start faster, and work on
/// systems without certificates.
pub(crate) struct Clients {
    resolver: Arc<dyn Resolver>,
    pools: [OnceLock<Result<reqwest::Client, String>>; 4],
}

impl Clients {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, pools: Default::default() }
    }

    /// Sends a request to an HTTP or HTTPS URL. Returns the response once its headers have arrived.
    /// Does not follow redirects.
    pub(crate) async fn send(
        &self,
        reach: Reach,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
    ) -> Result<IncompleteResponse, EgressError> {
        let client = self.client(reach, &url)?;
        let wants_length = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        let mut request = reqwest::Request::new(method, url.clone());
        *request.headers_mut() = headers;
        if !body.is_empty() || wants_length {
            *request.body_mut() = Some(body.into());
        }
        client
            .execute(request)
            .await
            .map(IncompleteResponse)
            .map_err(|why| classify_error(&url, limit, &why))
    }

    fn client(&self, reach: Reach, url: &Url) -> Result<&reqwest::Client, EgressError> {
        let tls = url.scheme() == "https";
        let [plain, plain_named, secure, secure_named] = &self.pools;
        let pool = match (tls, reach) {
            (false, Reach::Public) => plain,
            (false, Reach::Named) => plain_named,
            (true, Reach::Public) => secure,
            (true, Reach::Named) => secure_named,
        };
        pool.get_or_init(|| {
            build_client(CheckedResolver { inner: Arc::clone(&self.resolver), reach }, tls)
        })
        .as_ref()
        .map_err(|why| EgressError::no_client(why))
    }
}

/// A response whose body has not been read completely.
#[derive(Debug)]
pub(crate) struct IncompleteResponse(reqwest::Response);

impl IncompleteResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn take_headers(&mut self) -> HeaderMap {
        std::mem::take(self.0.headers_mut())
    }

    /// Returns the next chunk of the body, decompressed, or `None` at the end of the body.
    pub(crate) async fn chunk(
        &mut self,
        url: &Url,
        limit: Duration,
    ) -> Result<Option<Bytes>, EgressError> {
        self.0.chunk().await.map_err(|why| classify_error(url, limit, &why))
    }
}

/// A resolver that fails if a name has an address that `reach` denies.
struct CheckedResolver {
    inner: Arc<dyn Resolver>,
    reach: Reach,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.inner.resolve(name.as_str());
        let reach = self.reach;
        async move {
            let checked = check(name.as_str(), answer.await, reach)
                .map_err(Box::<dyn Error + Send + Sync>::from)?;
            // Port 0 means the port of the URL.
            Ok(Box::new(checked.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        }
        .boxed()
    }
}

/// Builds a client that ignores proxy settings in the environment, keeps no cookies, and neither
/// retries requests nor follows redirects.
fn build_client(resolver: CheckedResolver, tls: bool) -> Result<reqwest::Client, String> {
    // The HTTP library has no cryptography of its own. The call fails if the application has
    // already chosen a provider for the process. In that case, that provider is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(8)
        .user_agent(concat!("wattle/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(resolver));
    let builder = if tls { builder.https_only(true) } else { builder.tls_certs_only([]) };
    builder.build().map_err(|why| {
        let mut cause: &dyn Error = &why;
        while let Some(next) = cause.source() {
            cause = next;
        }
        cause.to_string()
    })
}

/// Converts an error from the HTTP library into an [`EgressError`]. Returns an error from the
/// resolver unchanged.
fn classify_error(url: &Url, limit: Duration, why: &reqwest::Error) -> EgressError {
    let mut cause: &dyn Error = why;
    loop {
        if let Some(own) = cause.downcast_ref::<EgressError>() {
            return own.clone();
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break,
        }
    }
    match (why.is_connect(), why.is_timeout()) {
        (false, true) => EgressError::timeout(url, limit),
        (true, _) => EgressError::unconnected(url, &cause.to_string()),
        (false, false) => EgressError::broken(url, &cause.to_string()),
    }
}
