//! A secret: its value, and the hosts that it may be sent to.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use url::Url;

use super::clean::{Cleaner, Spellings};
use crate::address::is_loopback;
use crate::host::{DomainPattern, RuleError};

/// Minimum length of a secret, in characters. A shorter secret could occur in ordinary text by
/// chance.
pub(super) const MIN_CHARS: usize = 8;

/// Maximum length of a secret, in bytes. The cost of the search grows with the length.
const MAX_BYTES: usize = 8 << 10;

/// Maximum length of a secret's name, in bytes.
pub(super) const MAX_NAME: usize = 64;

/// A secret. It is sent only in requests, and its debug output does not contain its value.
#[derive(Clone)]
pub struct Secret(Arc<Inner>);

struct Inner {
    name: String,
    value: String,
    hosts: Vec<SecretHost>,
    /// The cleaner that replaces this secret with its reference.
    cleaner: OnceLock<Cleaner>,
}

/// The error returned if the name or the value of a secret is invalid. The message contains
/// neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(&'static str);

/// A host that a secret may be sent to: `api.example.com` or `*.example.com`, with or without a
/// port. Plain HTTP is allowed only on this machine, or if the scheme `http` is specified, as in
/// `http://intra.example:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretHost {
    pattern: DomainPattern,
    port: Option<u16>,
    plain: bool,
}

impl FromStr for SecretHost {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let (plain, rest) = match text.strip_prefix("http://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("https://").unwrap_or(text)),
        };
        let port =
            rest.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let (host, port) =
            match port.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?))) {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            };
        Ok(SecretHost { pattern: host.parse()?, port, plain })
    }
}

impl fmt::Display for SecretHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain { "http://" } else { "" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{scheme}{}{port}", self.pattern)
    }
}

impl SecretHost {
    fn matches(&self, url: &Url) -> bool {
        self.pattern.matches(url)
            && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

impl Secret {
    /// Creates a secret that may be sent to `hosts`. Leading and trailing whitespace is removed
    /// from the value.
    ///
    /// # Errors
    /// If the name is empty, is too long, or contains characters other than letters, digits, `_`
    /// and `-`, or if the value is too short, is too long, or contains a NUL.
    pub fn new(name: &str, value: &str, hosts: Vec<SecretHost>) -> Result<Secret, SecretError> {
        if !Secret::is_name(name) {
            return Err(SecretError(
                "the name of a secret has 1 to 64 letters, digits, `_` and `-`",
            ));
        }
        let value = value.trim();
        if value.chars().count() < MIN_CHARS {
            return Err(SecretError(
                "the value has fewer than 8 characters: it could not be distinguished from other \
                 text in what comes back",
            ));
        }
        if value.contains('\0') {
            return Err(SecretError("the value has a NUL in it"));
        }
        if value.len() > MAX_BYTES {
            return Err(SecretError("the value has more than 8,192 bytes: no header carries it"));
        }
        let cleaner = OnceLock::new();
        Ok(Secret(Arc::new(Inner {
            name: name.to_owned(),
            value: value.to_owned(),
            hosts,
            cleaner,
        })))
    }

    /// Returns true if a string is a valid secret name.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        (1..=MAX_NAME).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    }

    /// Returns the name of the secret.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the value, for use in a request.
    pub fn reveal(&self) -> &str {
        &self.0.value
    }

    /// Returns true if the secret is for the host and port of a URL, regardless of its scheme.
    pub(crate) fn is_for(&self, url: &Url) -> bool {
        self.0.hosts.iter().any(|entry| entry.matches(url))
    }

    /// Checks that the secret may be sent to a URL. The error names the setting that would permit
    /// it.
    pub fn admits(&self, url: &Url) -> Result<(), String> {
        let name = self.name();
        let host = url.host_str().unwrap_or("that URL");
        let listed = self.0.hosts.iter().filter(|entry| entry.matches(url)).collect::<Vec<_>>();
        if listed.is_empty() {
            return Err(format!(
                "the secret `{name}` is not for {host}; the operator adds that to `hosts` of \
                 `[secrets.{name}]` in the user file"
            ));
        }
        if url.scheme() == "https" || is_loopback(url) || listed.iter().any(|entry| entry.plain) {
            return Ok(());
        }
        Err(format!(
            "the secret `{name}` goes over https only; `http://{host}` in `hosts` of \
             `[secrets.{name}]` in the user file would permit it"
        ))
    }

    /// Replaces each occurrence of the value in a byte string, in any spelling, with the secret's
    /// reference.
    #[must_use]
    pub fn scrub(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.cleaner().clean(bytes)
    }

    /// Replaces each occurrence of the value in a string, in any spelling, with the secret's
    /// reference.
    #[must_use]
    pub fn scrub_text(&self, text: &str) -> String {
        self.cleaner().clean_text(text)
    }

    fn cleaner(&self) -> &Cleaner {
        let Inner { name, value, cleaner, .. } = &*self.0;
        cleaner.get_or_init(|| {
            Spellings::new(std::iter::once((name.as_str(), value.as_str()))).cleaner()
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("name", &self.0.name)
            .field("hosts", &self.0.hosts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
    use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

    fn secret(value: &str) -> Secret {
        Secret::new("key", value, Vec::new()).unwrap()
    }

    #[test]
    fn a_secret_is_found_however_it_is_encoded() {
        for value in [
            "s3cr3t-value",
            "pa ss/wo+rd=&\"'<ü>\\",
            "AAAAAAAA",
            "tok_0123456789abcdef\nsecond line",
        ] {
            let secret = secret(value);
            let json = serde_json::to_string(value).unwrap();
            let mut texts = vec![
                format!("echo: {value}."),
                json.clone(),
                format!("[{}]", json.replace('/', "\\/")),
                format!("?k={}&", percent_encode(value.as_bytes(), NON_ALPHANUMERIC)),
                url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("k", value)
                    .finish(),
                value.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ];
            for before in ["", "u", "u:", "u:v"] {
                for after in ["", "!", "!!", "!!!"] {
                    let whole = format!("{before}{value}{after}");
                    texts.extend([
                        STANDARD.encode(&whole),
                        URL_SAFE.encode(&whole),
                        STANDARD_NO_PAD.encode(&whole),
                    ]);
                }
            }
            for text in texts {
                let clean = secret.scrub_text(&text);
                assert!(clean.contains("${secret:key}"), "{value:?} in {text:?}: {clean:?}");
                assert!(!clean.contains(value), "{clean:?}");
            }
        }
    }

    #[test]
    fn only_the_secret_is_replaced() {
        let secret = secret("s3cr3t-value");
        let text = "the status is 403: token s3cr3t-value is not allowed (s3cr3t, value)";
        assert_eq!(
            secret.scrub_text(text),
            "the status is 403: token ${secret:key} is not allowed (s3cr3t, value)"
        );
        assert_eq!(secret.scrub_text("s3cr3t-values3cr3t-value"), "${secret:key}${secret:key}");
        assert_eq!(secret.scrub(vec![0xff, 0, 0xfe]), [0xff, 0, 0xfe]);
    }

    #[test]
    fn an_invalid_secret_is_reported_without_its_value() {
        for (name, value, words) in [
            ("key", "short", "fewer than 8 characters"),
            ("key", "  seven77  ", "fewer than 8 characters"),
            ("key", "", "fewer than 8 characters"),
            ("key", "äöüßäöü", "fewer than 8 characters"),
            ("key", "with a \0 in it", "NUL"),
            ("a b", "s3cr3t-value", "letters, digits"),
            ("", "s3cr3t-value", "letters, digits"),
            ("a}b", "s3cr3t-value", "letters, digits"),
        ] {
            let why = Secret::new(name, value, Vec::new()).unwrap_err().to_string();
            assert!(
                why.contains(words) && (value.is_empty() || !why.contains(value)),
                "{name} {value}: {why}"
            );
        }
        assert!(!format!("{:?}", secret("s3cr3t-value")).contains("s3cr3t"));
    }

    #[test]
    fn hosts_are_parsed_with_their_ports_and_schemes() {
        for text in [
            "api.example.com",
            "*.example.com",
            "api.example.com:8443",
            "http://intra.example:8080",
            "[::1]:80",
            "127.0.0.1",
        ] {
            assert_eq!(text.parse::<SecretHost>().unwrap().to_string(), text);
        }
        for text in
            ["", "*", "a.*.b", "ftp://example.com", "a/b", "me@example.com", "example.com:99999"]
        {
            assert!(text.parse::<SecretHost>().is_err(), "{text}");
        }
        let secret = |hosts: &[&str]| {
            Secret::new(
                "key",
                "s3cr3t-value",
                hosts.iter().map(|host| host.parse().unwrap()).collect(),
            )
            .unwrap()
        };
        for (hosts, url, admitted) in [
            (&["api.example.com:8443"][..], "https://api.example.com:8443/", true),
            (&["api.example.com:8443"], "https://api.example.com/", false),
            (&["http://intra.example"], "http://intra.example/", true),
            (&["intra.example"], "http://intra.example/", false),
            (&["127.0.0.1"], "http://127.0.0.1:9/", true),
            (&["[::1]"], "http://[::1]:9/", true),
            (&["localhost"], "http://localhost:9/", true),
            (&[], "https://api.example.com/", false),
        ] {
            assert_eq!(
                secret(hosts).admits(&url.parse().unwrap()).is_ok(),
                admitted,
                "{hosts:?} {url}"
            );
        }
    }
}
