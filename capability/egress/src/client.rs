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
use reqwest::{Certificate, Proxy};
use url::Url;

pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};

use crate::environment::Environment;
use crate::error::EgressError;
use crate::policy::Reach;
use crate::resolve::{Resolver, check, lacks_files, starved};

/// The HTTP clients: one for each [`Reach`] and scheme, each with its own resolver and its own pool
/// of connections.
///
/// A pooled connection is reused only for requests with the same reach. It therefore always leads
/// to an address that the reach permits, even if the name resolves to other addresses later. Each
/// resolver checks addresses for one reach, so it need not know the port of the request. If a proxy
/// leads to an endpoint, the resolver resolves and checks the proxy's name. Plain HTTP
/// has separate clients because it needs no certificates: its clients start faster, and work on
/// systems without certificates.
pub(crate) struct Clients {
    resolver: Arc<dyn Resolver>,
    environment: OnceLock<Environment>,
    pools: [OnceLock<Result<reqwest::Client, String>>; 6],
}

impl Clients {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, environment: OnceLock::new(), pools: Default::default() }
    }

    /// Creates clients with the same resolver and another environment.
    pub(crate) fn with_environment(&self, environment: Environment) -> Self {
        let environment = OnceLock::from(environment);
        Self { environment, ..Self::new(Arc::clone(&self.resolver)) }
    }

    pub(crate) fn environment(&self) -> &Environment {
        self.environment.get_or_init(Environment::of_process)
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
        loop {
            let mut request = reqwest::Request::new(method.clone(), url.clone());
            *request.headers_mut() = headers.clone();
            if !body.is_empty() || wants_length {
                *request.body_mut() = Some(body.clone().into());
            }
            match client.execute(request).await {
                // Nothing was sent, and others close their files.
                Err(why) if why.is_connect() && is_starved(&why) => starved().await,
                sent => {
                    let sent = sent.map(IncompleteResponse);
                    return sent.map_err(|why| classify_error(&url, limit, &why));
                }
            }
        }
    }

    fn client(&self, reach: Reach, url: &Url) -> Result<&reqwest::Client, EgressError> {
        let tls = url.scheme() == "https";
        let [plain, plain_named, plain_endpoint, secure, secure_named, secure_endpoint] =
            &self.pools;
        let pool = match (tls, reach) {
            (false, Reach::Public) => plain,
            (false, Reach::Named) => plain_named,
            (false, Reach::Endpoint) => plain_endpoint,
            (true, Reach::Public) => secure,
            (true, Reach::Named) => secure_named,
            (true, Reach::Endpoint) => secure_endpoint,
        };
        let environment = self.environment();
        pool.get_or_init(|| {
            let inner = Arc::clone(&self.resolver);
            build_client(CheckedResolver { inner, reach }, tls, environment)
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

/// Builds a client that keeps no cookies, and neither retries requests nor follows redirects. Only a
/// client for endpoints uses the proxies and certificates of the environment.
fn build_client(
    resolver: CheckedResolver,
    tls: bool,
    environment: &Environment,
) -> Result<reqwest::Client, String> {
    let is_for_endpoints = resolver.reach == Reach::Endpoint;
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
    let roots = match is_for_endpoints {
        true if tls || environment.needs_roots() => environment.endpoint_roots()?,
        false if tls => environment.program_roots()?,
        _ => Some(Vec::new()),
    };
    let builder = match roots {
        // A system's bundle may contain certificates that the library rejects.
        Some(roots) => {
            builder.tls_certs_only(roots.iter().filter_map(|der| Certificate::from_der(der).ok()))
        }
        None => builder,
    };
    let builder = builder.https_only(tls);
    let builder = if is_for_endpoints {
        let environment = environment.clone();
        builder.proxy(Proxy::custom(move |url| environment.proxy_url(url).cloned()))
    } else {
        builder
    };
    builder.build().map_err(|why| {
        let mut cause: &dyn Error = &why;
        while let Some(next) = cause.source() {
            cause = next;
        }
        cause.to_string()
    })
}

/// Returns true if a connection was not opened because the process or the system has too many open
/// files.
fn is_starved(why: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(why);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(lacks_files) {
            return true;
        }
        cause = error.source();
    }
    false
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
