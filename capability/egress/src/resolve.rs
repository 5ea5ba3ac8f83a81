//! From names to checked addresses.

use std::io;
use std::net::IpAddr;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

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

/// Lets only permitted addresses through. One bad address refuses them all: a name that mixes public and private addresses is
/// either broken or an attack.
pub(super) fn check(name: &str, answer: io::Result<Vec<IpAddr>>, reach: Reach) -> Result<Vec<IpAddr>, EgressError> {
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
