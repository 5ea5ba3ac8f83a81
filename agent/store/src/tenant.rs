//! Tenants, the owners of data.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Maximum length of a tenant's name, in bytes.
const NAME_BYTES: usize = 64;

/// The tenant of a run that does not specify a tenant.
pub const DEFAULT_TENANT: &str = "default";

/// The name of a tenant: 1 to 64 ASCII letters, digits, `.`, `_`, `-`, `@` and `+`, beginning with
/// a letter or a digit.
///
/// Names are compared byte by byte: `bob` and `Bob` are two tenants. Only ASCII is allowed, so that
/// different names never look the same, and each name has only one spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

/// The error for a string that is not a valid tenant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tenant's name has 1 to {NAME_BYTES} ASCII letters, digits, `.`, `_`, `-`, `@` and `+`, and \
     begins with a letter or a digit; {0:?} is not one"
)]
pub struct TenantError(String);

impl Tenant {
    /// Parses a name.
    ///
    /// # Errors
    /// If the string is not a valid tenant name.
    pub fn new(name: &str) -> Result<Tenant, TenantError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
        let has_valid_start = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if has_valid_start && name.len() <= NAME_BYTES && name.bytes().all(plain) {
            return Ok(Tenant(name.into()));
        }
        Err(TenantError(name.chars().take(NAME_BYTES).collect()))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a file name for the tenant's data: 32 hexadecimal digits. Tenants whose names differ
    /// only in case get different file names.
    #[must_use]
    pub fn file_name(&self) -> String {
        use fmt::Write as _;
        let digest = Sha256::digest(self.0.as_bytes());
        digest.iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// The tenant `default`.
impl Default for Tenant {
    fn default() -> Tenant {
        Tenant(DEFAULT_TENANT.into())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = TenantError;

    fn from_str(name: &str) -> Result<Tenant, TenantError> {
        Tenant::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_name_is_plain_ascii() {
        for name in ["default", "Bob", "bob", "0", "a.b_c-d@e.example+f", &"x".repeat(64)] {
            assert_eq!(Tenant::new(name).unwrap().as_str(), name);
        }
        let long = "x".repeat(65);
        let hostile = [
            "",
            " ",
            "a b",
            "a\tb",
            "a\0",
            "a\n",
            "../a",
            ".a",
            "-a",
            "a/b",
            "a%",
            "a:b",
            "bób",
            "ｂob",
            "b\u{200b}ob",
            "a'b",
            &long,
        ];
        for name in hostile {
            let error = Tenant::new(name).unwrap_err().to_string();
            assert!(
                error.starts_with("a tenant's name has 1 to 64 ASCII letters"),
                "{name:?}: {error}"
            );
        }
    }

    #[test]
    fn names_that_differ_in_case_are_two_tenants() {
        let (one, other) = (Tenant::new("bob").unwrap(), Tenant::new("Bob").unwrap());
        assert_ne!(one, other);
        assert_ne!(one.file_name(), other.file_name());
        assert!(
            one.file_name().len() == 32
                && one.file_name().bytes().all(|byte| byte.is_ascii_hexdigit())
        );
    }
}
