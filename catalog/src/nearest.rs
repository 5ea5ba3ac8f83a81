//! Which known word a wrong one was meant to be.

use strsim::osa_distance;

/// Words longer than this are nobody's misspelling; the bound keeps the comparison cheap on any input.
const LONGEST: usize = 128;

/// The known word that comes nearest, however far; the first of several. A word that the other begins with counts as near.
pub(crate) fn key<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word: String = word.chars().take(LONGEST).collect();
    let abbreviates = |k: &str| word.len() >= 3 && (k.starts_with(&word) || word.starts_with(k));
    known.iter().copied().min_by_key(|k| if abbreviates(k) { 1 } else { osa_distance(&word, k) })
}

/// How far a program's name is from what was asked for: 0 where only case, separators, a namespace or the order of the
/// words differ; `None` where it is not close.
pub(crate) fn distance(asked: &str, name: &str) -> Option<usize> {
    if asked.len() > LONGEST {
        return None;
    }
    let wanted = words(name);
    let mut best = None;
    for candidate in [asked, local_part(asked)] {
        let given = words(candidate);
        let apart = if sorted(&given) == sorted(&wanted) {
            0
        } else {
            let (given, wanted) = (given.concat(), wanted.concat());
            let apart = osa_distance(&given, &wanted);
            if apart > given.len().max(wanted.len()) / 4 {
                continue;
            }
            apart
        };
        best = Some(best.map_or(apart, |b: usize| b.min(apart)));
    }
    best
}

/// What stands behind the last namespace separator.
fn local_part(name: &str) -> &str {
    name.rsplit(['.', ':', '/']).next().unwrap_or(name)
}

/// The words of a name in small letters; a capital letter behind a small one begins a word.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for c in name.chars() {
        if (!c.is_alphanumeric() || (after_small && c.is_uppercase())) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
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
        for (word, expected) in
            [("desc", "description"), ("type", "type_hint"), ("nmae", "name"), ("defualt", "default")]
        {
            assert_eq!(key(word, &known), Some(expected), "{word}");
        }
        assert_eq!(key("x", &[]), None);
    }
}
