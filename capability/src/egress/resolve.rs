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

/// The HTTP clients, one for each [`Reach`], each with its own resolver and its own pool of connections.
///
/// A pooled connection is reused only within its reach, and was opened to an address that this reach
/// permits. So it does not matter that a name may answer otherwise by now, nor that the resolver is not told the port.
pub(super) struct Clients {
    resolver: Arc<dyn Resolver>,
    public: OnceLock<Result<Client, String>>,
    named: OnceLock<Result<Client, String>>,
}

impl Clients {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, public: OnceLock::new(), named: OnceLock::new() }
    }

    pub(super) fn of(&self, reach: Reach) -> Result<&Client, EgressError> {
        let cell = match reach {
            Reach::Public => &self.public,
            Reach::Named => &self.named,
        };
        cell.get_or_init(|| client(CheckedResolver { inner: Arc::clone(&self.resolver), reach }))
            .as_ref()
            .map_err(|why| EgressError::no_client(why))
    }
}

/// Makes a client that takes nothing from the environment, keeps nothing between requests and follows nothing by itself.
fn client(resolver: CheckedResolver) -> Result<Client, String> {
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(8)
        .user_agent(concat!("wattle/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(resolver))
        .build()
        .map_err(|why| why.to_string())
}
