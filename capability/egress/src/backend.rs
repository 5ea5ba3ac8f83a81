//! The requests of programs, and what carries them.

use wattle_rt::PortFuture;

use crate::{HeaderMap, Incoming, Method, Outgoing};

/// A request as a program makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, in capitals.
    pub method: Method,
    /// An absolute URL.
    pub url: String,
    /// Header names and values.
    pub headers: HeaderMap,
    /// The body, empty for none.
    pub body: Vec<u8>,
}

/// An answer of any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header names and values.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

/// What carries a program's requests: the egress guard, or answers of a test. It is given what has passed the run's guard and vault,
/// and returns what the vault has cleaned.
pub trait Backend: Send + Sync {
    /// Sends the request, and asks it about each URL that a redirect leads to. A refusal is `EACCESS`, a URL that cannot be read
    /// `EPARSE`, too late `ETIME`, anything else `EREMOTE`.
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming>;
}

impl From<Request> for crate::Request {
    fn from(request: Request) -> crate::Request {
        let Request { method, url, headers, body } = request;
        crate::Request { method, url, headers, body: body.into() }
    }
}
