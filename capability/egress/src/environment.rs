//! The proxies and certificates that the environment of the process names. They apply to the
//! operator's endpoints only: a program's request goes straight to a checked address and trusts the
//! certificates of the system.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use url::{Host, Url};

use crate::address::{Class, classify, classify_name};
use crate::error::EgressError;

/// The variables with a proxy, each in upper case. The lower-case spelling comes first, as in curl.
const HTTP: &str = "HTTP_PROXY";
const HTTPS: &str = "HTTPS_PROXY";
const ALL: &str = "ALL_PROXY";
const EXEMPT: &str = "NO_PROXY";
/// The variables with certificates, as in OpenSSL.
const CERT_FILE: &str = "SSL_CERT_FILE";
const CERT_DIR: &str = "SSL_CERT_DIR";

/// The bundles of certificates of the usual systems.
const SYSTEM_BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The proxies and certificates of an environment.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exempt: Vec<Exemption>,
    cert_file: Option<PathBuf>,
    cert_dirs: Vec<PathBuf>,
    /// The error of a variable that does not contain the URL of a proxy.
    invalid: Option<EgressError>,
}

/// Certificates of authorities, in DER.
type Roots = Vec<CertificateDer<'static>>;

/// A proxy and the variable that names it.
#[derive(Clone)]
struct Proxy {
    url: Url,
    variable: String,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exemption {
    /// Every host.
    All,
    /// A domain and all names below it, in lower case, and the port if the entry has one.
    Domain(String, Option<u16>),
    /// The addresses that share this number of leading bits.
    Network(IpAddr, u32),
}

impl Environment {
    /// Reads the environment of the process.
    #[must_use]
    pub fn of_process() -> Environment {
        Environment::read(|name| std::env::var_os(name))
    }

    /// Reads the variables that `get` returns. Each variable for proxies may have a name in lower or
    /// in upper case.
    pub fn read(get: impl Fn(&str) -> Option<OsString>) -> Environment {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let either = |name: &str| {
            [name.to_lowercase(), name.to_owned()]
                .into_iter()
                .find_map(|name| Some((set(&name)?.to_string_lossy().into_owned(), name)))
        };
        let mut invalid = None;
        let mut proxy = |name: &str| {
            let (value, variable) = either(name)?;
            Proxy::parse(&value, variable).map_err(|why| invalid = Some(why)).ok()
        };
        let all = proxy(ALL);
        let (http, https) = (proxy(HTTP), proxy(HTTPS));
        let exempt = either(EXEMPT).map(|(value, _)| value).unwrap_or_default();
        let exempt = exempt.split([',', ' ', '\t']).filter_map(Exemption::parse);
        Environment {
            http: http.or_else(|| all.clone()),
            https: https.or(all),
            exempt: exempt.collect(),
            cert_file: set(CERT_FILE).map(PathBuf::from),
            cert_dirs: set(CERT_DIR).iter().flat_map(std::env::split_paths).collect(),
            invalid,
        }
    }

    /// Checks that the variables for proxies are valid.
    pub(crate) fn check(&self) -> Result<(), EgressError> {
        self.invalid.clone().map_or(Ok(()), Err)
    }

    /// Returns the proxy for an endpoint, or `None` if the endpoint is reached directly. Names and
    /// addresses of this machine are always reached directly.
    fn proxy(&self, endpoint: &Url) -> Option<&Proxy> {
        let proxy = if endpoint.scheme() == "https" { &self.https } else { &self.http };
        let proxy = proxy.as_ref()?;
        let (host, port) = (endpoint.host()?, endpoint.port_or_known_default());
        let is_direct =
            is_loopback(&host) || self.exempt.iter().any(|exemption| exemption.covers(&host, port));
        (!is_direct).then_some(proxy)
    }

    /// Returns the URL of the proxy for an endpoint, with its credentials.
    pub(crate) fn proxy_url(&self, endpoint: &Url) -> Option<&Url> {
        self.proxy(endpoint).map(|proxy| &proxy.url)
    }

    /// Returns true if the way to a plain endpoint needs certificates, because its proxy uses TLS.
    pub(crate) fn needs_roots(&self) -> bool {
        self.http.as_ref().is_some_and(|proxy| proxy.url.scheme() == "https")
    }

    /// Describes the way to an endpoint, as `through http://proxy:3128 (HTTPS_PROXY)`. Returns
    /// `None` if it is reached directly. The text contains no credentials.
    #[must_use]
    pub fn route(&self, endpoint: &Url) -> Option<String> {
        self.proxy(endpoint).map(|proxy| format!("through {proxy:?}"))
    }

    /// Returns the files and folders of certificates that the environment names.
    pub fn certificate_paths(&self) -> impl Iterator<Item = &Path> {
        self.cert_file.iter().chain(&self.cert_dirs).map(PathBuf::as_path)
    }

    /// Returns the certificates that an endpoint's certificate may be signed by, or `None` for those
    /// of the system.
    pub(crate) fn endpoint_roots(&self) -> Result<Option<Roots>, String> {
        if self.certificate_paths().next().is_none() {
            return Ok(None);
        }
        let dirs = self.cert_dirs.iter().map(|dir| (None, Some(dir.as_path())));
        let file = self.cert_file.as_deref().map(|file| (Some(file), None));
        let named = || format!("the certificates of `{CERT_FILE}` or `{CERT_DIR}`");
        let roots = load(file.into_iter().chain(dirs))
            .map_err(|why| format!("failed to read {}: {why}", named()))?;
        if roots.is_empty() { Err(format!("{}: there are none", named())) } else { Ok(Some(roots)) }
    }

    /// Returns the certificates that a certificate for a program's request may be signed by, or
    /// `None` for those that the HTTP library finds. The library would read the variables of the
    /// environment, too.
    pub(crate) fn program_roots(&self) -> Result<Option<Roots>, String> {
        if self.certificate_paths().next().is_none() {
            return Ok(None);
        }
        let bundle = SYSTEM_BUNDLES.iter().map(Path::new).find(|path| path.exists());
        load(bundle.map(|bundle| (Some(bundle), None))).map(Some)
    }
}

/// Reads certificates from files and folders, each once.
fn load<'a>(
    paths: impl IntoIterator<Item = (Option<&'a Path>, Option<&'a Path>)>,
) -> Result<Roots, String> {
    let mut roots = Vec::new();
    for (file, dir) in paths {
        let found = rustls_native_certs::load_certs_from_paths(file, dir);
        if let (true, Some(why)) = (found.certs.is_empty(), found.errors.first()) {
            return Err(why.to_string());
        }
        roots.extend(found.certs);
    }
    Ok(roots)
}

impl Proxy {
    fn parse(value: &str, variable: String) -> Result<Proxy, EgressError> {
        let spelled =
            if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
        match Url::parse(&spelled) {
            Ok(url) if url.has_host() && schemes.contains(&url.scheme()) => {
                Ok(Proxy { url, variable })
            }
            _ => Err(EgressError::no_proxy(&variable)),
        }
    }
}

/// Shows the proxy without its credentials.
impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scheme, host) = (self.url.scheme(), self.url.host_str().unwrap_or_default());
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{scheme}://{host}{port} ({})", self.variable)
    }
}

/// Returns true if the host is this machine.
fn is_loopback(host: &Host<&str>) -> bool {
    let class = match host {
        Host::Domain(name) => classify_name(name.trim_end_matches('.')),
        Host::Ipv4(address) => classify((*address).into()),
        Host::Ipv6(address) => classify((*address).into()),
    };
    class == Some(Class::Loopback)
}

impl Exemption {
    fn parse(entry: &str) -> Option<Exemption> {
        let entry = entry.trim();
        if entry == "*" {
            return Some(Exemption::All);
        }
        let plain = entry.trim_start_matches('[').replace(']', "");
        let (address, bits) = match plain.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (plain.as_str(), None),
        };
        if let Ok(address) = address.parse::<IpAddr>() {
            let bits = bits.map_or(Some(u32::MAX), |bits| bits.parse().ok())?;
            return Some(Exemption::Network(address, bits));
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let name = name.trim_start_matches('*').trim_start_matches('.').trim_end_matches('.');
        match name.parse::<IpAddr>() {
            _ if name.is_empty() => None,
            // An address with a port: the port makes no difference.
            Ok(address) => Some(Exemption::Network(address, u32::MAX)),
            Err(_) => Some(Exemption::Domain(name.to_lowercase(), port)),
        }
    }

    fn covers(&self, host: &Host<&str>, port: Option<u16>) -> bool {
        let address = match host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::from(*address)),
            Host::Ipv6(address) => Some(IpAddr::from(*address).to_canonical()),
        };
        match (self, host, address) {
            (Exemption::All, ..) => true,
            (Exemption::Domain(name, of_port), Host::Domain(host), _) => {
                let host = host.trim_end_matches('.').to_lowercase();
                let above = host.strip_suffix(name.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
                    && of_port.is_none_or(|of_port| Some(of_port) == port)
            }
            (Exemption::Network(network, bits), _, Some(address)) => {
                same_network(*network, address, *bits)
            }
            _ => false,
        }
    }
}

/// Returns true if both addresses are of the same kind and share their first `bits` bits.
fn same_network(network: IpAddr, address: IpAddr, bits: u32) -> bool {
    let differing = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros().min(32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros().min(128),
        _ => return false,
    };
    let all = if network.is_ipv4() { 32 } else { 128 };
    differing >= bits.min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into())
        })
    }

    fn route(environment: &Environment, url: &str) -> String {
        environment.route(&url.parse().unwrap()).unwrap_or_default()
    }

    #[test]
    fn each_scheme_has_its_proxy_in_either_case() {
        let both = environment(&[
            ("HTTPS_PROXY", "http://me:secret@upper:1"),
            ("https_proxy", "lower:2"),
            ("ALL_PROXY", "socks5h://all:3"),
        ]);
        assert_eq!(route(&both, "https://a.example"), "through http://lower:2 (https_proxy)");
        assert_eq!(route(&both, "http://a.example"), "through socks5h://all:3 (ALL_PROXY)");
        let upper = environment(&[("HTTPS_PROXY", "http://me:secret@upper:1")]);
        assert_eq!(route(&upper, "https://a.example"), "through http://upper:1 (HTTPS_PROXY)");
        assert_eq!(route(&upper, "http://a.example"), "");
        assert!(!format!("{upper:?}").contains("secret"));
        for value in ["ftp://a", "http://", "http://a:99999"] {
            let error = environment(&[("HTTP_PROXY", value)]).check().unwrap_err().to_string();
            assert!(error.contains("HTTP_PROXY"), "{error}");
        }
        assert_eq!(route(&environment(&[("HTTPS_PROXY", "")]), "https://a.example"), "");
    }

    #[test]
    fn exempt_hosts_are_reached_directly() {
        let list = "internal.example, .corp *.lab 10.0.0.0/8,fd00::/8 192.0.2.7,[2001:db8::1],p:81";
        let some = environment(&[("HTTP_PROXY", "http://proxy:1"), ("no_proxy", list)]);
        for direct in [
            "internal.example",
            "INTERNAL.example:99",
            "a.internal.example.",
            "a.corp",
            "b.a.lab",
            "10.1.2.3",
            "[fd12::1]",
            "192.0.2.7:8080",
            "[2001:db8::1]",
            "p:81",
            // This machine, always.
            "localhost:11434",
            "a.localhost",
            "127.9.9.9",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(route(&some, &format!("http://{direct}/v1")), "", "{direct}");
        }
        for proxied in
            ["example", "notinternal.example", "11.0.0.1", "192.0.2.8", "[2001:db8::2]", "p"]
        {
            assert_ne!(route(&some, &format!("http://{proxied}/v1")), "", "{proxied}");
        }
        let all = environment(&[("HTTP_PROXY", "http://proxy:1"), ("NO_PROXY", "*")]);
        assert_eq!(route(&all, "http://a.example"), "");
    }

    #[test]
    fn certificates_that_cannot_be_read_name_their_variable() {
        assert!(environment(&[]).endpoint_roots().unwrap().is_none());
        assert!(environment(&[]).program_roots().unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem").display().to_string();
        let empty = folder.path().display().to_string();
        for (name, value) in [("SSL_CERT_FILE", &missing), ("SSL_CERT_DIR", &empty)] {
            let why = environment(&[(name, value)]).endpoint_roots().unwrap_err();
            assert!(why.contains(name), "{why}");
        }
        let dirs = environment(&[("SSL_CERT_DIR", "/a:/b"), ("SSL_CERT_FILE", "/c")]);
        assert_eq!(dirs.certificate_paths().count(), 3);
    }
}
