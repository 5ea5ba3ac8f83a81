//! Functions that find numbers in text that a person or a model wrote.

use std::sync::LazyLock;

use regex::Regex;

/// Words for the numbers from 0 to 20. An answer may contain such a word instead of digits.
const WORDS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

/// Returns the numbers in a string, in order. A number may have a sign, thousands separators, a
/// fraction and an exponent. Digits in a word (`x86`) or in a dotted version (`1.2.3`) are not
/// numbers.
///
/// A comma separates thousands only if exactly three digits follow, as in `1,234.5`.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let whole = r"\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’_\u{a0}\u{2009}\u{202f}]\d{3})+|\d+";
        let pattern = format!(r"(?:[-+−]\s?)?(?:(?:{whole})(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?");
        Regex::new(&pattern).ok()
    });
    let Some(pattern) = NUMBER.as_ref() else { return Vec::new() };
    let is_separate = |found: &regex::Match<'_>| {
        let before = text.split_at(found.start()).0.chars().next_back();
        let rest = text.split_at(found.end()).1;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // A sign after a digit is a hyphen, as in `2024-05`.
        let signed = found.as_str().starts_with(['-', '+', '−']);
        let before = before.is_none_or(|c| {
            !(is_word(c) || matches!(c, '.' | ',' | '/' | ':') || (c == '-' && !signed))
        });
        let mut after = rest.chars();
        let after = match after.next() {
            Some('.' | ',' | '-' | '/' | ':') => after.next().is_none_or(|c| !c.is_ascii_digit()),
            Some('°' | '%' | '€' | '$') | None => true,
            Some(c) => !is_word(c) || is_unit(rest),
        };
        before && after
    };
    let read = |found: regex::Match<'_>| {
        let is_digit = |c: &char| c.is_ascii_digit() || matches!(c, '.' | '-' | 'e' | 'E');
        found.as_str().replace('−', "-").chars().filter(is_digit).collect::<String>().parse().ok()
    };
    pattern.find_iter(text).filter(is_separate).filter_map(read).collect()
}

/// Returns the lists of numbers that a string can be read as. The first list is the result of
/// [`numbers`]. Lists for three other notations are included only if they are unambiguous: a
/// decimal comma (`1.250,75`), spaces between thousands (`1 250.75`), and number words.
pub(crate) fn readings(text: &str) -> Vec<Vec<f64>> {
    let mut readings = vec![numbers(text)];
    static EUROPEAN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let thousands = r"\d{1,3}(?:[. \u{a0}\u{2009}\u{202f}]\d{3})+,\d+";
        Regex::new(&format!(
            r"(?:^|[^\w.,])({thousands}|\d+,(?:\d{{1,2}}|\d{{4,}}))(?:$|[^\w.,]|[.,](?:$|\D))"
        ))
        .ok()
    });
    static SPACED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?:^|[^\w.,])(\d{1,3}(?: \d{3})+(?:\.\d+)?)(?:$|[^\w.,]|[.,](?:$|\D))").ok()
    });
    // The whole text must contain exactly one matching number and no other digits.
    let only = |pattern: &LazyLock<Option<Regex>>| {
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
        let found = pattern.as_ref()?.captures(text)?.get(1)?.as_str();
        (digits(found) == digits(text)).then_some(found)
    };
    let negative = |found: &str| {
        let before = text.split(found).next().unwrap_or_default().trim_end();
        if before.ends_with(['-', '−']) { -1.0 } else { 1.0 }
    };
    if let Some(found) = only(&EUROPEAN) {
        let is_part = |c: &char| c.is_ascii_digit() || *c == ',';
        let plain: String = found.chars().filter(is_part).collect();
        let number = plain.replace(',', ".").parse::<f64>();
        readings.extend(number.map(|number| vec![number * negative(found)]));
    }
    if let Some(found) = only(&SPACED) {
        let number = found.replace(' ', "").parse::<f64>();
        readings.extend(number.map(|number| vec![number * negative(found)]));
    }
    if !text.contains(|c: char| c.is_ascii_digit()) {
        readings.push(number_words(text));
    }
    readings
}

/// Returns the numbers that are written as words in a string.
fn number_words(text: &str) -> Vec<f64> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let number = |word: &str| WORDS.iter().zip(0_u8..).find(|(name, _)| **name == word);
    words.filter_map(number).map(|(_, number)| f64::from(number)).collect()
}

/// Returns true if `text`, which directly follows a number, begins with a unit such as `km` or `h`.
fn is_unit(text: &str) -> bool {
    let letters = text.chars().take_while(|c| c.is_alphabetic()).count();
    letters <= 3 && text.chars().nth(letters).is_none_or(|c| !(c.is_ascii_digit() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::{numbers, readings};

    #[test]
    fn numbers_are_found_in_text() {
        for (text, expected) in [
            ("42", &[42.0][..]),
            ("The total is 1,234.50 EUR.", &[1234.5]),
            ("-3 and +4", &[-3.0, 4.0]),
            ("− 3", &[-3.0]),
            ("1e3", &[1000.0]),
            (".5", &[0.5]),
            ("1'250'000", &[1_250_000.0]),
            ("12_345", &[12_345.0]),
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

    #[test]
    fn a_text_is_read_in_another_way_only_if_it_has_one_meaning() {
        for (text, expected) in [
            ("1.250,75", &[1250.75][..]),
            ("-0,5 m", &[-0.5]),
            ("12 345", &[12_345.0]),
            ("about twelve", &[12.0]),
            ("two or three", &[2.0, 3.0]),
        ] {
            let readings = readings(text);
            assert!(
                readings.iter().skip(1).any(|reading| reading == expected),
                "{text}: {readings:?}"
            );
        }
        for text in ["1,250", "1.250", "1, 250", "1,25 and 3", "1 250 and 3", "12 345 6", "anyone"]
        {
            let readings = readings(text);
            assert!(readings.iter().skip(1).all(Vec::is_empty), "{text}: {readings:?}");
        }
    }
}
