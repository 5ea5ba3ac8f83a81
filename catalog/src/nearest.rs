//! Suggestions for misspelled words.

use strsim::osa_distance;

use crate::front::block::unknown;

/// Maximum length of a word to compare, in characters. The limit keeps the comparison cheap.
const MAX_WORD: usize = 128;

/// Returns the known word that is closest to `word`, however distant it is, or `None` if `known` is
/// empty. If several words are equally close, returns the first of them. If `word` has at least
/// three bytes and one word is a prefix of the other, their distance counts as 1.
pub(crate) fn key<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word: String = word.chars().take(MAX_WORD).collect();
    let abbreviates = |k: &str| word.len() >= 3 && (k.starts_with(&word) || word.starts_with(k));
    known.iter().copied().min_by_key(|k| if abbreviates(k) { 1 } else { osa_distance(&word, k) })
}

/// Returns the known name that is closest to `name`, or `None` if no name is close. Case,
/// separators and word order are ignored.
#[must_use]
pub fn nearest_name<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().filter_map(|known| Some((distance(name, known)?, known)));
    distances.min().map(|(_, known)| known)
}

/// Returns the known key that is closest to the unknown key in a TOML parser's error message, or
/// `None` if the error has a different cause.
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct File { prompt: String }
/// let error = toml::from_str::<File>("promt = \"Be brief.\"").unwrap_err();
/// assert_eq!(wattle_catalog::nearest_key(error.message()).as_deref(), Some("prompt"));
/// ```
#[must_use]
pub fn nearest_key(message: &str) -> Option<String> {
    let kinds = ["unknown field ", "unknown variant "];
    let (word, known) = kinds.iter().find_map(|kind| unknown(message, kind))?;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    key(&word, &known).map(str::to_owned)
}

/// Returns the edit distance between the requested name and a program's name. The distance is 0 if
/// the names differ only in case, separators, a namespace or word order. Returns `None` if the
/// names are not close.
pub(crate) fn distance(asked: &str, name: &str) -> Option<usize> {
    if asked.len() > MAX_WORD {
        return None;
    }
    let wanted = words(name);
    let mut best = None;
    for candidate in [asked, local_part(asked)] {
        let given = words(candidate);
        let distance = if sorted(&given) == sorted(&wanted) {
            0
        } else {
            let (given, wanted) = (given.concat(), wanted.concat());
            let distance = osa_distance(&given, &wanted);
            if distance > given.len().max(wanted.len()) / 4 {
                continue;
            }
            distance
        };
        best = Some(best.map_or(distance, |b: usize| b.min(distance)));
    }
    best
}

/// Returns the part of a name after the last namespace separator.
fn local_part(name: &str) -> &str {
    name.rsplit(['.', ':', '/']).next().unwrap_or(name)
}

/// Splits a name into lowercase words. An uppercase letter after a lowercase letter starts a new
/// word.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_lowercase = false;
    for c in name.chars() {
        if (!c.is_alphanumeric() || (after_lowercase && c.is_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        after_lowercase = c.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn sorted(words: &[String]) -> Vec<&String> {
    let mut sorted: Vec<&String> = words.iter().collect();
    sorted.sort();
    sorted
}

#[cfg(test)]
mod tests {
    use super::{distance, key};

    #[test]
    fn only_close_names_count() {
        for (asked, name, expected) in [
            ("HTTP-GET", "http_get", Some(0)),
            ("httpGet", "http_get", Some(0)),
            ("tools.http_get", "http_get", Some(0)),
            ("get_http", "http_get", Some(0)),
            ("htp_get", "http_get", Some(1)),
            ("read_fiel", "read_file", Some(1)),
            ("read_file", "write_file", None),
            ("kv_get", "kv_set", Some(1)),
            ("shell", "http_get", None),
            ("", "http_get", None),
        ] {
            assert_eq!(distance(asked, name), expected, "{asked} ~ {name}");
        }
        assert_eq!(distance(&"http_get".repeat(1000), "http_get"), None);
    }

    #[test]
    fn a_key_always_has_a_nearest() {
        let known = ["name", "type_hint", "description", "default"];
        for (word, expected) in [
            ("desc", "description"),
            ("type", "type_hint"),
            ("nmae", "name"),
            ("defualt", "default"),
        ] {
            assert_eq!(key(word, &known), Some(expected), "{word}");
        }
        assert_eq!(key("x", &[]), None);
    }
}
