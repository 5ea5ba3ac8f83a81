//! Names of programs.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The most bytes that a name has.
const LONGEST: usize = 64;

/// The name of a program: a small letter, then small letters, digits, `_` and `.`, 64 at the most.
///
/// ```
/// use wattle_catalog::Name;
/// assert!("text.word_count".parse::<Name>().is_ok());
/// assert!("Word-Count".parse::<Name>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// A text that is no name of a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name begins with a small letter, has small letters, digits, `_` and `.`, and 64 characters at the most")]
pub struct NotAName;

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Name, NotAName> {
        let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
        let fits =
            text.len() <= LONGEST && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(known);
        if fits { Ok(Name(text.into())) } else { Err(NotAName) }
    }
}

impl Name {
    /// The name as text.
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
