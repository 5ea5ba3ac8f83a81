//! The URL of a database on a PostgreSQL server.

use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use url::Url;

use crate::error::Cause;

/// The default schema.
const SCHEMA: &str = "wattle";
/// Maximum length of a schema's name, in bytes.
const MAX_SCHEMA: usize = 63;
/// The parameter that names a file of trusted certificates.
const ROOTS: &str = "sslrootcert";

/// The minimum protection of the connection, set by the parameter `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// An unencrypted connection.
    Disable,
    /// TLS if the server offers it, with any certificate.
    Prefer,
    /// TLS, with any certificate.
    Require,
    /// TLS, with a trusted certificate for the server's name.
    VerifyFull,
}

/// The TLS settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) protection: Protection,
    /// A file of trusted certificates, used instead of the system's.
    pub(super) roots: Option<PathBuf>,
}

/// The parsed URL of a database.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) config: Config,
    pub(super) schema: String,
    pub(super) tls: TlsSettings,
    /// If true, the URL leads to a pooler that gives each transaction another session of the server.
    pub(super) is_pooled: bool,
    /// The URL with its password masked.
    pub(super) shown: String,
}

impl Location {
    /// Parses a URL. Errors never contain the password.
    pub(super) fn parse(text: &str) -> Result<Location, Cause> {
        let mut url = Url::parse(text).map_err(|error| format!("the URL is invalid: {error}"))?;
        let shown = masked(&url);
        let (mut schema, mut protection, mut roots) = (SCHEMA.to_owned(), None, None);
        let mut is_pooled = false;
        let mut others = Vec::new();
        for (key, value) in url.query_pairs().into_owned() {
            match key.as_str() {
                "schema" => schema = value,
                "sslmode" => protection = Some(protection_of(&value)?),
                ROOTS => roots = Some(PathBuf::from(value)),
                "pooler" if value == "transaction" => is_pooled = true,
                "pooler" => {
                    return Err(format!(
                        "`pooler` is `transaction`, not `{value}`; a pooler by session needs no \
                         parameter"
                    )
                    .into());
                }
                _ => others.push((key, value)),
            }
        }
        check_schema(&schema)?;
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(&others);
        }
        // The driver's error could quote parts of the URL, such as the password.
        let mut config: Config = url.as_str().parse().map_err(|_| {
            "the URL is invalid; expected \
             `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE&schema=NAME`"
        })?;
        let protection = match protection {
            Some(protection) => protection,
            None if roots.is_some() => Protection::VerifyFull,
            None => Protection::Prefer,
        };
        if roots.is_some() && protection != Protection::VerifyFull {
            return Err("`sslrootcert` has an effect with `sslmode=verify-full` only".into());
        }
        config.ssl_mode(match protection {
            Protection::Disable => SslMode::Disable,
            Protection::Prefer => SslMode::Prefer,
            Protection::Require | Protection::VerifyFull => SslMode::Require,
        });
        Ok(Location { config, schema, tls: TlsSettings { protection, roots }, is_pooled, shown })
    }
}

/// Returns the URL with `***` in place of its password, and in place of the values of parameters
/// whose names contain `password`.
fn masked(url: &Url) -> String {
    let mut shown = url.clone();
    if shown.password().is_some() {
        // Setting the password fails only for a URL without a host, which has no password.
        let _ = shown.set_password(Some("***"));
    }
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if !pairs.is_empty() {
        let public = |(key, value): (String, String)| {
            if key.contains("password") { (key, "***".to_owned()) } else { (key, value) }
        };
        shown.query_pairs_mut().clear().extend_pairs(pairs.into_iter().map(public));
    }
    shown.into()
}

fn protection_of(mode: &str) -> Result<Protection, Cause> {
    Ok(match mode {
        "disable" => Protection::Disable,
        "prefer" => Protection::Prefer,
        "require" => Protection::Require,
        "verify-full" => Protection::VerifyFull,
        _ => {
            return Err(format!(
                "`sslmode` is `disable`, `prefer`, `require` or `verify-full`, not `{mode}`"
            )
            .into());
        }
    })
}

/// Checks that a schema name is valid and needs no escapes in a quoted identifier.
fn check_schema(name: &str) -> Result<(), Cause> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.as_bytes().first().is_some_and(|byte| !byte.is_ascii_digit());
    if begins && name.len() <= MAX_SCHEMA && name.bytes().all(is_plain) && !name.starts_with("pg_")
    {
        return Ok(());
    }
    Err(format!(
        "the schema `{name}` is not a valid name; use 1 to {MAX_SCHEMA} lowercase letters, digits \
         and `_`, beginning with neither a digit nor `pg_`"
    )
    .into())
}

/// Returns a store's URL for printing, with the password masked.
pub(crate) fn shown(text: &str) -> String {
    Url::parse(text).map_or_else(|_| "postgres://…".to_owned(), |url| masked(&url))
}

/// Returns the file of trusted certificates that a store's URL names.
pub(crate) fn certificates(text: &str) -> Option<PathBuf> {
    let url = Url::parse(text).ok()?;
    url.query_pairs().find(|(key, _)| key == ROOTS).map(|(_, value)| value.as_ref().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(url: &str) -> String {
        Location::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn the_password_is_in_no_text() {
        let url = "postgres://u:hunter2@db/x?schema=s1&sslmode=require";
        let location = Location::parse(url).unwrap();
        assert_eq!(location.shown, "postgres://u:***@db/x?schema=s1&sslmode=require");
        assert_eq!(location.schema, "s1");
        assert_eq!(location.tls.protection, Protection::Require);
        assert_eq!(location.config.get_password(), Some(&b"hunter2"[..]));
        let in_query = Location::parse("postgres://u@db/x?password=hunter2").unwrap().shown;
        assert_eq!(in_query, "postgres://u@db/x?password=***");
        for broken in ["postgres://u:hunter2@db:port/x", "postgres://u:hunter2@db/x?nonsense=1"] {
            assert!(!wrong(broken).contains("hunter2"), "{broken}");
            assert!(!shown(broken).contains("hunter2"), "{broken}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_an_error_that_names_the_rule() {
        assert!(wrong("postgres://db/x?schema=My-Schema").contains("lowercase letters"));
        assert!(wrong("postgres://db/x?schema=pg_x").contains("`pg_`"));
        assert!(wrong("postgres://db/x?sslmode=verify-ca").contains("`verify-full`"));
        assert!(wrong("postgres://db/x?pooler=statement").contains("`transaction`"));
        assert!(wrong("postgres://db/x?sslmode=require&sslrootcert=/f").contains("verify-full"));
    }

    #[test]
    fn a_file_of_certificates_asks_for_verification() {
        let location = Location::parse("postgres://db/x?sslrootcert=/f").unwrap();
        assert_eq!(location.tls.protection, Protection::VerifyFull);
        assert_eq!(Location::parse("postgres://db/x").unwrap().schema, SCHEMA);
    }
}
