//! Host names and origins, from headers and from the operator's lists.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::uri::{Authority, Scheme, Uri};

/// A normalized host name or address without a port: in lowercase, without a trailing dot, and with
/// brackets around an IPv6 address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

/// A page's origin: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    https: bool,
    host: HostName,
    port: u16,
}

/// The error returned if a string is not a valid host name or origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

impl HostName {
    /// Returns the host of an authority, without its port, or `None` if the authority is invalid.
    pub(crate) fn of(authority: &Authority) -> Option<HostName> {
        port(authority)?;
        let host = authority.host().to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        (!host.is_empty()).then(|| HostName(host.to_owned()))
    }
}

impl From<IpAddr> for HostName {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => HostName(v4.to_string()),
            IpAddr::V6(v6) => HostName(format!("[{v6}]")),
        }
    }
}

impl FromStr for HostName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || {
            NameError(format!(
                "`{text}` is not a host name: give a name or an address without scheme, port and \
                 path"
            ))
        };
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        let authority = Authority::from_str(text).map_err(|_| wrong())?;
        match (port(&authority), HostName::of(&authority)) {
            (Some(None), Some(name)) => Ok(name),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Origin {
    /// Returns true if the origin has the same host and port as `authority`. The scheme is not
    /// compared, because a proxy may add TLS.
    pub(crate) fn is_of(&self, authority: &Authority) -> bool {
        let port = port(authority).map(|port| port.unwrap_or(default_port(self.https)));
        HostName::of(authority).is_some_and(|host| host == self.host) && port == Some(self.port)
    }
}

/// Returns the port of an authority, or `Some(None)` if it has no port. Returns `None` if the
/// authority is not a host with an optional valid port.
fn port(authority: &Authority) -> Option<Option<u16>> {
    match authority.as_str().strip_prefix(authority.host())? {
        "" => Some(None),
        rest => rest.strip_prefix(':')?.parse().ok().map(Some),
    }
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

impl FromStr for Origin {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let wrong = || {
            NameError(format!(
                "`{text}` is not an origin: give scheme, host and port, such as \
                 `https://app.example:8443`"
            ))
        };
        let uri = Uri::from_str(text).map_err(|_| wrong())?;
        let https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        let has_path =
            uri.path_and_query().is_some_and(|rest| rest.as_str() != "/") || text.ends_with('/');
        let host = HostName::of(authority).ok_or_else(wrong)?;
        let port = port(authority).ok_or_else(wrong)?.unwrap_or(default_port(https));
        if has_path { Err(wrong()) } else { Ok(Origin { https, host, port }) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        if self.port == default_port(self.https) {
            write!(f, "{scheme}://{}", self.host)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_normalised() {
        for (text, name) in [
            ("localhost", "localhost"),
            ("Wattle.Example.", "wattle.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(text.parse::<HostName>().unwrap().to_string(), name);
        }
        for text in [
            "",
            ".",
            "a b",
            "host:80",
            "host:99999",
            "host:",
            "http://host",
            "host/path",
            "me@host",
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn origins_are_normalised() {
        for (text, origin) in [
            ("http://localhost:3000", "http://localhost:3000"),
            ("HTTPS://App.Example:443", "https://app.example"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), origin);
        }
        for text in [
            "",
            "null",
            "*",
            "localhost",
            "http://",
            "http://a/",
            "http://a/b",
            "http://a?b",
            "ftp://a",
            "http://me@a",
            "http://a:99999",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_page_of_the_server_itself_is_known() {
        let of = |origin: &str, host: &str| {
            origin.parse::<Origin>().unwrap().is_of(&host.parse().unwrap())
        };
        assert!(of("http://localhost:8787", "LOCALHOST:8787"));
        assert!(of("https://wattle.example", "wattle.example"));
        assert!(of("http://wattle.example", "wattle.example:80"));
        assert!(!of("http://localhost:3000", "localhost:8787"));
        assert!(!of("http://evil.example:8787", "localhost:8787"));
    }
}
