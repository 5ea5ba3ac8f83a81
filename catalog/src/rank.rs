//! Ranks documents by their relevance to a query.
//!
//! The ranking is BM25 over weighted fields: rare words count more than common words, and matches
//! in short documents count more than matches in long ones. For the same documents and the same
//! query, the order is the same on every machine.

use std::collections::{BTreeMap, BTreeSet};

use strsim::osa_distance;

/// BM25's k1. At lower values, repeated occurrences of a word add less to the score.
const SATURATION: f64 = 1.2;
/// BM25's b, from 0 to 1. At higher values, a match in a long document adds less to the score.
const LENGTH: f64 = 0.75;
/// Weight of a near match: the query word is a prefix of an indexed word, or one edit away from it.
const NEAR: f64 = 0.5;
/// Maximum number of distinct words that are looked up for a query.
const MAX_WORDS: usize = 200;

/// Words that say nothing about a document's subject.
const STOP_WORDS: &[&str] = &[
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "give",
    "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or", "please", "so",
    "that", "the", "then", "there", "this", "to", "want", "what", "when", "where", "which", "with",
    "you",
];

/// A field of a document: the weight of its words, and its text.
pub type Field<'a> = (f64, &'a str);

/// A search index over documents, which are identified by keys.
///
/// ```
/// use wattle_catalog::Index;
///
/// let index = Index::new([
///     ("http_get", vec![(4.0, "http_get"), (1.0, "Fetch a URL and return the response")]),
///     ("text_count", vec![(4.0, "text_count"), (1.0, "Count lines and words of a text")]),
/// ]);
/// let found: Vec<&&str> = index.rank("fetching pages").into_iter().map(|(key, _)| key).collect();
/// assert_eq!(found, [&"http_get"]);
/// assert!(index.rank("weather").is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Index<K> {
    texts: Vec<Text<K>>,
    /// Number of documents that contain each word.
    known: BTreeMap<String, usize>,
    /// The mean document length: the number of words, weighted by field.
    mean: f64,
}

#[derive(Clone, Debug)]
struct Text<K> {
    key: K,
    /// Number of occurrences of each word, weighted by field.
    counts: BTreeMap<String, f64>,
    length: f64,
}

impl<K> Index<K> {
    /// Builds an index. If two documents are equally relevant, the earlier document is ranked
    /// first.
    pub fn new<'a>(texts: impl IntoIterator<Item = (K, Vec<Field<'a>>)>) -> Index<K> {
        let mut known = BTreeMap::new();
        let text = |(key, fields): (K, Vec<Field<'a>>)| {
            let mut counts = BTreeMap::new();
            for (weight, field) in fields {
                words(field).for_each(|word| *counts.entry(word).or_insert(0.0) += weight);
            }
            counts.keys().for_each(|word: &String| *known.entry(word.clone()).or_insert(0) += 1);
            Text { key, length: counts.values().sum(), counts }
        };
        let texts: Vec<Text<K>> = texts.into_iter().map(text).collect();
        let mean = texts.iter().map(|text| text.length).sum::<f64>() / texts.len().max(1) as f64;
        Index { texts, known, mean }
    }

    /// Returns the keys of the documents that contain a word of the query `question`, each with the
    /// document's score, most relevant first. Case, plurals and other English endings are ignored.
    /// A word that no document contains matches words that start with it or differ from it by one
    /// edit.
    #[must_use]
    pub fn rank(&self, question: &str) -> Vec<(&K, f64)> {
        let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
        let asked: BTreeSet<String> = words(question).take(MAX_WORDS).collect();
        for word in &asked {
            match self.known.get_key_value(word.as_str()) {
                Some((word, _)) => drop(wanted.insert(word, 1.0)),
                None => self.near(word).for_each(|word| {
                    wanted.entry(word).or_insert(NEAR);
                }),
            }
        }
        let mut found: Vec<(usize, &K, f64)> = Vec::new();
        for (at, text) in self.texts.iter().enumerate() {
            let score: f64 =
                wanted.iter().map(|(word, weight)| weight * self.score(text, word)).sum();
            if score > 0.0 {
                found.push((at, &text.key, score));
            }
        }
        found.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        found.into_iter().map(|(_, key, score)| (key, score)).collect()
    }

    /// Returns the score of a document for a word.
    fn score(&self, text: &Text<K>, word: &str) -> f64 {
        let Some(count) = text.counts.get(word) else { return 0.0 };
        let (all, having) =
            (self.texts.len() as f64, self.known.get(word).copied().unwrap_or(0) as f64);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let length = 1.0 - LENGTH + LENGTH * text.length / self.mean;
        rarity * count * (SATURATION + 1.0) / (count + SATURATION * length)
    }

    /// Returns the indexed words that start with an unknown word or differ from it by one edit.
    fn near<'s>(&'s self, word: &str) -> impl Iterator<Item = &'s str> {
        let (word, length) = (word.to_owned(), word.chars().count());
        self.known.keys().map(String::as_str).filter(move |known| {
            let is_prefix = length >= 3 && known.starts_with(&word);
            let may_be_typo =
                (4..=32).contains(&length) && known.chars().count().abs_diff(length) <= 1;
            is_prefix || (may_be_typo && osa_distance(&word, known) == 1)
        })
    }
}

/// Returns the words of a string, in lowercase and without English endings. Omits stop words.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(camel_case_parts)
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).filter(|word| !STOP_WORDS.contains(&word.as_str())).map(stem)
}

/// Splits a `camelCase` word into its parts.
fn camel_case_parts(word: &str) -> Vec<&str> {
    let (mut parts, mut from, mut after_lowercase) = (Vec::new(), 0, false);
    for (at, c) in word.char_indices() {
        if after_lowercase && c.is_uppercase() {
            parts.extend(word.get(from..at));
            from = at;
        }
        after_lowercase = c.is_lowercase();
    }
    parts.extend(word.get(from..));
    parts
}

/// Removes the English ending of a word: `fetching`, `fetched` and `fetches` become `fetch`,
/// `files` and `file` become `fil`.
fn stem(word: String) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word;
    }
    let mut stem = word;
    let vowel = |text: &str| text.len() >= 2 && text.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    if stem.ends_with("ies") {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if ["ches", "shes", "sses", "xes", "zes"].iter().any(|ending| stem.ends_with(ending)) {
        stem.truncate(stem.len() - 2);
    } else if stem.ends_with('s')
        && !stem.ends_with("ss")
        && !stem.ends_with("us")
        && !stem.ends_with("is")
    {
        stem.truncate(stem.len() - 1);
    }
    let ending = ["ing", "ed"]
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .filter(|rest| vowel(rest));
    if let Some(rest) = ending.map(str::len) {
        stem.truncate(rest);
        let mut last = stem.bytes().rev();
        let doubled = matches!(
            (last.next(), last.next()),
            (Some(a), Some(b)) if a == b && !b"lsz".contains(&a)
        );
        if doubled {
            stem.truncate(stem.len() - 1);
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.truncate(stem.len() - 1);
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_ignored() {
        for same in [
            &["fetch", "fetches", "fetched", "fetching"][..],
            &["summarize", "summarizes", "summarizing", "Summarized"],
            &["file", "files"],
            &["query", "queries"],
            &["run", "running", "runs"],
            &["call", "calls", "calling"],
            &["replace", "replaced", "replacing"],
        ] {
            let stems: BTreeSet<String> = same.iter().flat_map(|word| words(word)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        for word in ["string", "status", "press", "this", "json", "css", "größe", "数字"] {
            assert!(words(word).all(|found| found == word), "{word}");
        }
    }

    #[test]
    fn names_are_split_into_words() {
        let found: Vec<String> = words("read_file readFile HTTP-get the csv2json").collect();
        assert_eq!(found, ["read", "fil", "read", "fil", "http", "get", "csv2json"]);
    }

    #[test]
    fn texts_are_ranked_by_relevance_then_by_order() {
        let index = Index::new([
            ("b", vec![(1.0, "count words")]),
            ("a", vec![(1.0, "count words")]),
            ("long", vec![(1.0, "count words and much else that stands here beside it")]),
            ("name", vec![(4.0, "words")]),
            ("none", vec![]),
        ]);
        let keys = |question: &str| {
            index.rank(question).into_iter().map(|(key, _)| *key).collect::<Vec<_>>()
        };
        assert_eq!(keys("word"), ["name", "b", "a", "long"]);
        assert_eq!(keys("wrods"), keys("word"), "a typo");
        assert_eq!(keys("cou"), ["b", "a", "long"], "a prefix");
        for nothing in ["", "the of", "zebra", "\u{0}", "!!!"] {
            assert!(keys(nothing).is_empty(), "{nothing}");
        }
        assert_eq!(keys(&"word ".repeat(100_000)), keys("word"));
        assert!(Index::<u8>::new([]).rank("word").is_empty());
    }
}
