//! File name patterns, which may contain `*`, `?` and `[…]`.

use super::bracket::{Set, bracket};
use super::push_literal;

/// Translates a file name pattern (`*`, `?`, `[…]`) into a regular expression that matches whole
/// names. A star also matches slashes.
pub(crate) fn glob(pattern: &str) -> String {
    let mut out = String::from(r"(?s)\A");
    let mut chars = pattern.chars().peekable();
    while let Some(letter) = chars.next() {
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '\\' => push_literal(&mut out, chars.next().unwrap_or('\\')),
            '[' => {
                let mut ahead = chars.clone();
                match bracket(&mut ahead, Set::Names) {
                    Ok(set) => {
                        out.push_str(&set);
                        chars = ahead;
                    }
                    Err(_) => out.push_str(r"\["),
                }
            }
            other => push_literal(&mut out, other),
        }
    }
    out.push_str(r"\z");
    out
}

/// Compiles a file name pattern.
///
/// # Errors
///
/// If the pattern is invalid.
pub(crate) fn names(pattern: &str, ignore_case: bool) -> Result<regex::bytes::Regex, String> {
    regex::bytes::RegexBuilder::new(&glob(pattern))
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| error.to_string())
}
