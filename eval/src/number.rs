//! Finds numbers in text, as people and models write them.

use std::sync::LazyLock;

use regex::Regex;

/// Returns the numbers in a text, in order. A number may have a sign, commas between thousands, a
/// fraction and an exponent. Digits in a word (`x86`) or a dotted version (`1.2.3`) are not
/// numbers.
///
/// A comma separates thousands only if exactly three digits follow, as in `1,234.5`.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pattern = r"(?:[-+−]\s?)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?";
        Regex::new(pattern).ok()
    });
    let Some(pattern) = NUMBER.as_ref() else { return Vec::new() };
    let is_separate = |found: &regex::Match<'_>| {
        let before = text.get(..found.start()).and_then(|before| before.chars().next_back());
        let after = text.get(found.end()..).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // A sign after a digit is a hyphen, as in `2024-05`.
        let signed = found.as_str().starts_with(['-', '+', '−']);
        let before = before.is_none_or(|c| {
            !(is_word(c) || matches!(c, '.' | ',' | '/' | ':') || (c == '-' && !signed))
        });
        let mut after = after.chars();
        let after = match after.next() {
            Some('.' | ',' | '-' | '/' | ':') => after.next().is_none_or(|c| !c.is_ascii_digit()),
            Some('°' | '%' | '€' | '$') | None => true,
            Some(c) => !is_word(c) || is_unit(text.get(found.end()..).unwrap_or_default()),
        };
        before && after
    };
    let read = |found: regex::Match<'_>| {
        let plain: String =
            found.as_str().chars().filter(|c| !matches!(c, ',' | '+' | ' ')).collect();
        plain.replace('−', "-").parse().ok()
    };
    pattern.find_iter(text).filter(is_separate).filter_map(read).collect()
}

/// Returns true if the text begins with a unit directly after a number: `km`, `ms`, `h`.
fn is_unit(text: &str) -> bool {
    let letters = text.chars().take_while(|c| c.is_alphabetic()).count();
    letters <= 3 && text.chars().nth(letters).is_none_or(|c| !(c.is_ascii_digit() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn numbers_are_found_in_text() {
        for (text, expected) in [
            ("42", &[42.0][..]),
            ("The total is 1,234.50 EUR.", &[1234.5]),
            ("-3 and +4", &[-3.0, 4.0]),
            ("− 3", &[-3.0]),
            ("1e3", &[1000.0]),
            ("about 12 km, or 12km", &[12.0, 12.0]),
            ("x86, v2, 1.2.3, 2024-05-01, 10:30, a_1", &[]),
            ("1,2,3", &[]),
            ("1, 2, 3.", &[1.0, 2.0, 3.0]),
            ("50%", &[50.0]),
            ("**7**", &[7.0]),
            ("none", &[]),
            ("", &[]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }
}
