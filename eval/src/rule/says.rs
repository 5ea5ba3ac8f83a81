//! The rule `says`: a short answer names one value, or several values in order, and no others.

use super::clean::{plain, unfenced};
use super::item::{Item, is_near, joined};
use super::quoted;
use crate::number::numbers;

/// Maximum number of words in an answer, not counting the expected strings.
const MAX_OTHER_WORDS: usize = 40;

/// Words that evade the question or express doubt.
const HEDGES: &[&str] = &[
    "or", "either", "neither", "nor", "not", "no", "maybe", "perhaps", "possibly", "probably",
    "might", "unsure", "unclear", "unknown", "unable", "cannot", "can't", "couldn't", "isn't",
    "wasn't", "don't", "doesn't", "didn't", "guess", "failed", "error",
];

/// Returns the reason why the text does not name exactly the expected items, or `None` if it does.
pub(super) fn wrong(
    subject: &str,
    text: &str,
    items: &[Item],
    others: &[String],
    within: f64,
) -> Option<String> {
    let spoken = plain(unfenced(text)).to_lowercase();
    let expected = joined(items);
    // Strings are removed first, because they may contain digits.
    let mut rest = spoken.clone();
    let mut from = 0;
    for item in items {
        let Item::Text(item) = item else { continue };
        let item = plain(item).trim().to_lowercase();
        match find_phrase(&spoken, &item, from) {
            Some(at) => from = at + item.len(),
            None => {
                return Some(format!("{subject} does not say {expected:?}: {}", quoted(text)));
            }
        }
        while let Some(at) = find_phrase(&rest, &item, 0) {
            rest.replace_range(at..at + item.len(), " ");
        }
    }
    let wanted: Vec<f64> = items
        .iter()
        .filter_map(|item| if let Item::Number(number) = item { Some(*number) } else { None })
        .collect();
    if !wanted.is_empty() {
        let mut found = numbers(&rest);
        found.dedup();
        let same = found.len() == wanted.len()
            && found.iter().zip(&wanted).all(|(found, wanted)| is_near(*found, *wanted, within));
        if !same {
            return Some(format!("{subject} does not say {expected:?}: {}", quoted(text)));
        }
    }
    if let Some(other) =
        others.iter().find(|other| find_phrase(&rest, &plain(other).to_lowercase(), 0).is_some())
    {
        return Some(format!("{subject} says {other:?}, too: {}", quoted(text)));
    }
    let is_part = |c: char| !(c.is_alphanumeric() || c == '\'');
    let words: Vec<&str> = rest.split(is_part).filter(|word| !word.is_empty()).collect();
    if let Some(hedge) = words.iter().find(|word| HEDGES.contains(word)) {
        return Some(format!("{subject} is uncertain ({hedge:?}): {}", quoted(text)));
    }
    (words.len() > MAX_OTHER_WORDS).then(|| {
        format!(
            "{subject} has {} words around {expected:?}, and at most {MAX_OTHER_WORDS} are allowed",
            words.len()
        )
    })
}

/// Returns the offset of the first occurrence of a phrase, at or after `from`, that is not part of
/// a longer word or name: `north` is not found in `north-east`, and `b.txt` is not found in
/// `a/b.txt`.
fn find_phrase(text: &str, phrase: &str, from: usize) -> Option<usize> {
    if phrase.is_empty() {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let joins = |c: char| matches!(c, '-' | '.' | '/' | '@' | '\\');
    let rest = text.get(from..)?;
    rest.match_indices(phrase).map(|(at, _)| from + at).find(|at| {
        let mut before = text.split_at(*at).0.chars().rev();
        let mut after = text.split_at(at + phrase.len()).1.chars();
        let starts_with_word = phrase.chars().next().is_some_and(is_word);
        let ends_with_word = phrase.chars().next_back().is_some_and(is_word);
        let open = |first: Option<char>, second: Option<char>| match first {
            Some(c) if is_word(c) => false,
            Some(c) if joins(c) => !second.is_some_and(is_word),
            _ => true,
        };
        (!starts_with_word || open(before.next(), before.next()))
            && (!ends_with_word || open(after.next(), after.next()))
    })
}
