//! From names to checked addresses: the only place where a connection learns where to go.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, redirect};
use url::Url;

use super::error::EgressError;
use super::policy::Reach;

/// Turns host names into addresses. The guard asks once for each connection that it opens.
pub trait Resolver: Send + Sync + 'static {
    /// Gives all addresses of a name.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Asks the operating system, as every other program on the machine does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) }.boxed()
    }
}

/// Looks a name up, once, and lets only checked addresses through. One bad address refuses them all: a name
/// that mixes public and private addresses is either broken or an attack.
struct CheckedResolver {
    inner: Arc<dyn Resolver>,
    reach: Reach,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.inner.resolve(name.as_str());
        let reach = self.reach;
        async move {
            let checked = check(name.as_str(), answer.await, reach).map_err(Box::<dyn Error + Send + Sync>::from)?;
            // Port 0 stands for the port of the URL.
            Ok(Box::new(checked.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        }
        .boxed()
    }
}

fn check(name: &str, answer: io::Result<Vec<IpAddr>>, reach: Reach) -> Result<Vec<IpAddr>, EgressError> {
    let addresses = answer.map_err(|why| EgressError::unresolved(name, &why.to_string()))?;
    if addresses.is_empty() {
        return Err(EgressError::unresolved(name, "the name has no address"));
    }
    for &address in &addresses {
        if let Some(class) = reach.refuses(address) {
            let permittable = reach == Reach::Public && Reach::Named.refuses(address).is_none();
            return Err(EgressError::resolves_to(name, address, class, permittable));
        }
    }
    Ok(addresses)
}

/// The HTTP clients, one for each [`Reach`] and scheme, each with its own resolver and its own pool of connections.
///
/// A pooled connection is reused only within its reach, and was opened to an address that this reach
/// permits. So it does not matter that a name may answer otherwise by now, nor that the resolver is not told the port.
/// Plain http has clients of its own because it needs no certificates: it starts at once, and works where there are none.
pub(super) struct Clients {
    resolver: Arc<dyn Resolver>,
    pools: [OnceLock<Result<Client, String>>; 4],
}

impl Clients {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, pools: Default::default() }
    }

    /// Gives the client that may be asked for `url`, which is http or https.
    pub(super) fn of(&self, reach: Reach, url: &Url) -> Result<&Client, EgressError> {
        let tls = url.scheme() == "https";
        let [plain, plain_named, secure, secure_named] = &self.pools;
        let pool = match (tls, reach) {
            (false, Reach::Public) => plain,
            (false, Reach::Named) => plain_named,
            (true, Reach::Public) => secure,
            (true, Reach::Named) => secure_named,
        };
        pool.get_or_init(|| client(CheckedResolver { inner: Arc::clone(&self.resolver), reach }, tls))
            .as_ref()
            .map_err(|why| EgressError::no_client(why))
    }
}

/// Makes a client that takes nothing from the environment, keeps nothing between requests and follows nothing by itself.
fn client(resolver: CheckedResolver, tls: bool) -> Result<Client, String> {
    let builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
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
