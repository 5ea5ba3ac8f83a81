//! Patterns that choose the tools of a server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A pattern for the names of tools, in which `*` stands for any characters.
///
/// ```
/// use wattle_mcp::ToolPattern;
/// let pattern: ToolPattern = "get_*".parse()?;
/// assert!(pattern.matches("get_issue") && !pattern.matches("delete_issue"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPattern(String);

/// Maximum length of a pattern, in bytes.
const MAX_LENGTH: usize = 256;

impl ToolPattern {
    /// Returns true if the pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            let Some(at) = rest.find(part) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        rest.ends_with(last)
    }
}

impl FromStr for ToolPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<ToolPattern, String> {
        if text.is_empty() || text.len() > MAX_LENGTH || text.contains(char::is_control) {
            return Err(format!(
                "a pattern of tools has 1 to {MAX_LENGTH} bytes without control characters"
            ));
        }
        Ok(ToolPattern(text.to_owned()))
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = String;

    fn try_from(text: String) -> Result<ToolPattern, String> {
        text.parse()
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> String {
        pattern.0
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, matching, other) in [
            ("*", &["a", ""][..], &[][..]),
            ("read", &["read"], &["reads", "re", ""]),
            ("read_*", &["read_", "read_file"], &["read", "aread_file"]),
            ("*_file", &["read_file", "_file"], &["read_files"]),
            ("a*b*c", &["abc", "axxbyyc", "abbc"], &["ab", "acb", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
        ] {
            let pattern: ToolPattern = pattern.parse().unwrap();
            assert!(matching.iter().all(|name| pattern.matches(name)), "{pattern}");
            assert!(!other.iter().any(|name| pattern.matches(name)), "{pattern}");
        }
        assert!("".parse::<ToolPattern>().is_err() && "a\n".parse::<ToolPattern>().is_err());
    }
}
