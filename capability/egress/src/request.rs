//! Requests and responses with complete bodies.

use bytes::Bytes;

use crate::client::{HeaderMap, Method, StatusCode};

/// An HTTP request. The HTTP client sets `Host` and the headers that control the connection and the
/// framing. A request that already contains one of these headers is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method. CONNECT and TRACE are refused.
    pub method: Method,
    /// An absolute HTTP or HTTPS URL.
    pub url: String,
    /// The headers. A value that is marked as sensitive is not sent to another origin after a
    /// redirect.
    pub headers: HeaderMap,
    /// The body. It may be empty.
    pub body: Bytes,
}

impl Request {
    /// Creates a GET request without headers.
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: Method::GET, url: url.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// Creates a POST request without headers.
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, url: url.into(), headers: HeaderMap::new(), body: body.into() }
    }
}

/// An HTTP response with any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decompressed.
    pub body: Bytes,
}
