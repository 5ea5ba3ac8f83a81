//! The names of programs.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Maximum length of a program name, in bytes.
const MAX_NAME: usize = 64;

/// The name of a program. It consists of a lowercase letter, followed by lowercase letters, digits,
/// `_` and `.`, and has at most 64 characters.
///
/// ```
/// use wattle_catalog::Name;
/// assert!("text.word_count".parse::<Name>().is_ok());
/// assert!("Word-Count".parse::<Name>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// The error that reports an invalid program name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name starts with a lowercase letter and contains only lowercase letters, digits, `_` and \
     `.`, at most 64 characters"
)]
pub struct InvalidName;

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Name, InvalidName> {
        let is_allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
        let is_valid = text.len() <= MAX_NAME
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(is_allowed);
        if is_valid { Ok(Name(text.into())) } else { Err(InvalidName) }
    }
}

impl Name {
    /// Returns the name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
