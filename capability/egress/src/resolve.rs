//! Resolves host names and checks their addresses.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::error::EgressError;
use crate::policy::Reach;

/// A resolver of host names. It is called once for each new connection.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of a name.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        async move {
            loop {
                match tokio::net::lookup_host((name.as_str(), 0)).await {
                    Err(why) if lacks_files(&why) => starved().await,
                    found => return Ok(found?.map(|found| found.ip()).collect()),
                }
            }
        }
        .boxed()
    }
}

/// Returns true if the process or the system has too many open files (`EMFILE`, `ENFILE`).
pub(crate) fn lacks_files(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(23 | 24))
}

/// Waits a little for others to close their files. The time limit of the request ends the wait.
pub(crate) async fn starved() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// Checks and returns the addresses of a name. Fails if any of the addresses is denied: a name with
/// both public and private addresses is either misconfigured or an attack.
pub(crate) fn check(
    name: &str,
    answer: io::Result<Vec<IpAddr>>,
    reach: Reach,
) -> Result<Vec<IpAddr>, EgressError> {
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
