//! The rules `list` and `set`, which compare the items of a list in any notation.

use serde_json::Value as Json;

use super::clean::{bare, normalised, unfenced};
use super::item::{Item, joined};
use super::quoted;

/// Returns the reason why the text is not a list of the expected items, or `None` if it is. If
/// `ordered` is true, the order of the items must match.
pub(super) fn wrong(
    subject: &str,
    text: &str,
    expected: &[Item],
    ordered: bool,
    within: f64,
) -> Option<String> {
    let same = |found: &Vec<String>| {
        if ordered {
            is_sequence(found, expected, within)
        } else {
            is_permutation(found, expected, within)
        }
    };
    if readings(text).iter().any(same) {
        return None;
    }
    let order = if ordered { "in this order" } else { "in any order" };
    Some(format!("{subject} is not the list [{}] {order}: {}", joined(expected), quoted(text)))
}

fn is_sequence(found: &[String], expected: &[Item], within: f64) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, item)| item.is(found, within))
}

fn is_permutation(found: &[String], expected: &[Item], within: f64) -> bool {
    let mut left: Vec<&String> = found.iter().collect();
    let each_is_there = expected.iter().all(|item| {
        left.iter().position(|found| item.is(found, within)).map(|at| left.remove(at)).is_some()
    });
    each_is_there && left.is_empty()
}

/// Returns the lists of items that the text can be read as, one for each possible notation.
fn readings(text: &str) -> Vec<Vec<String>> {
    let text = normalised(unfenced(text));
    if let Ok(Json::Array(items)) = serde_json::from_str(&text) {
        let plain = |item: Json| match item {
            Json::String(text) => text,
            other => other.to_string(),
        };
        return vec![items.into_iter().map(plain).collect()];
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut readings = Vec::new();
    let is_nothing = |text: &str| {
        matches!(bare(text).to_lowercase().as_str(), "" | "none" | "nothing" | "(none)" | "-")
    };
    if is_nothing(&text) {
        readings.push(Vec::new());
    }
    match lines.as_slice() {
        [] => {}
        [line] => single_line(line, &mut readings),
        [first, rest @ ..] => {
            if first.ends_with(':') {
                match rest {
                    [line] => single_line(line, &mut readings),
                    _ => readings.push(unmarked(rest)),
                }
            }
            readings.push(unmarked(&lines));
        }
    }
    readings
}

/// Adds the lists that a single line can be read as. If the line contains a colon followed by a
/// space, the text after the first such colon is read as a list, too.
fn single_line(line: &str, readings: &mut Vec<Vec<String>>) {
    let led = line.split_once(": ").map(|(_, rest)| rest);
    for line in std::iter::once(line).chain(led) {
        let line = line.trim().trim_start_matches(['[', '(', '{']);
        let line = line.strip_suffix('.').unwrap_or(line).trim_end_matches([']', ')', '}']);
        readings.push(unmarked(&[line]));
        for separator in [";", ",", " and ", " "] {
            let parts = || line.split(separator).map(|part| part.trim().to_owned());
            if line.contains(separator) {
                readings.push(parts().filter(|part| !part.is_empty()).collect());
            }
        }
        // Handles `a, b and c` and `a, b, and c`.
        let joined = line.replace(", and ", ", ").replace(" and ", ", ");
        if joined != line {
            readings.push(joined.split(',').map(|part| part.trim().to_owned()).collect());
        }
    }
}

/// Returns the lines without their bullets, or without their numbers if these count up from 1.
fn unmarked(lines: &[&str]) -> Vec<String> {
    let numbered = |(at, line): (usize, &&str)| {
        let digits = line.chars().take_while(char::is_ascii_digit).count();
        let (number, rest) = line.split_at_checked(digits)?;
        let rest = rest.strip_prefix(['.', ')'])?.strip_prefix(' ')?;
        (number.parse() == Ok(at + 1)).then(|| rest.trim().to_owned())
    };
    if let Some(items) = lines.iter().enumerate().map(numbered).collect() {
        return items;
    }
    let bullet = |line: &&str| {
        let bare = ["- ", "* ", "• ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
        bare.unwrap_or(line).trim().to_owned()
    };
    lines.iter().map(bullet).collect()
}
