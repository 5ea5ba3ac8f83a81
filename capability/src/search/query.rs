//! Splits documents into words for the index, and converts queries into index expressions.

/// Maximum number of words in a query.
const MAX_WORDS: usize = 48;

/// Minimum length of a word that also matches as a prefix, in characters.
const MIN_PREFIX: usize = 4;

/// Stop words. They are ignored unless a query consists only of stop words.
const STOP_WORDS: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our", "so", "that", "the",
    "their", "there", "these", "this", "to", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "will", "with", "you", "your",
];

/// The index expression for a query. The user's words are quoted, so they cannot act as operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(String);

impl Query {
    /// Parses the words of a query. Returns `None` if the query has no words.
    #[must_use]
    pub fn read(text: &str) -> Option<Query> {
        let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let matters = |word: &&str| !STOP_WORDS.contains(&word.to_lowercase().as_str());
        let mut chosen = distinct(words().filter(matters));
        if chosen.is_empty() {
            chosen = distinct(words());
        }
        let terms: Vec<String> = chosen.into_iter().flat_map(terms).collect();
        (!terms.is_empty()).then(|| Query(terms.join(" OR ")))
    }

    /// Returns the expression in SQLite FTS5 syntax.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.0
    }
}

/// Returns the first [`MAX_WORDS`] distinct words, in order.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
        if found.len() == MAX_WORDS {
            break;
        }
    }
    found
}

/// Returns the index terms for a word of a query: the word itself, a term for all words that start
/// with it, and its parts if it is a compound name such as `readFile`.
fn terms(word: &str) -> Vec<String> {
    let mut terms = Vec::new();
    if word.chars().any(is_ideograph) {
        // Text in a script without spaces between words matches as a sequence of characters.
        return runs(word).into_iter().map(|run| format!("\"{run}\"")).collect();
    }
    terms.push(format!("\"{word}\""));
    if word.chars().count() >= MIN_PREFIX {
        terms.push(format!("\"{word}\" *"));
    }
    let parts = parts_of_name(word);
    if parts.len() > 1 {
        terms.extend(
            parts.iter().filter(|part| part.chars().count() > 1).map(|part| format!("\"{part}\"")),
        );
    }
    terms
}

/// Returns additional words for the index, separated by spaces: the parts of names such as
/// `readFile`, and single ideographs.
#[must_use]
pub fn parts(text: &str) -> String {
    let mut found = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if word.chars().any(is_ideograph) {
            for run in runs(word) {
                push(&mut found, &run);
            }
            continue;
        }
        let parts = parts_of_name(word);
        if parts.len() > 1 {
            parts.iter().for_each(|part| push(&mut found, part));
        }
    }
    found
}

fn push(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

/// Splits a name into words: `HTTPServer2` becomes `HTTP` and `Server2`.
fn parts_of_name(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    for (at, window) in chars.windows(2).enumerate() {
        let [(_, one), (end, two)] = window else { continue };
        let follows = chars.get(at + 2).is_some_and(|(_, three)| three.is_lowercase());
        if two.is_uppercase() && (!one.is_uppercase() || follows) {
            parts.extend(word.get(start..*end));
            start = *end;
        }
    }
    parts.extend(word.get(start..));
    parts
}

/// Splits a word into runs of ideographs and runs of other characters. Separates the ideographs of
/// a run with spaces.
fn runs(word: &str) -> Vec<String> {
    let mut runs: Vec<(bool, String)> = Vec::new();
    for c in word.chars() {
        let ideograph = is_ideograph(c);
        match runs.last_mut() {
            Some((same, run)) if *same == ideograph => {
                if ideograph {
                    run.push(' ');
                }
                run.push(c);
            }
            _ => runs.push((ideograph, c.to_string())),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Returns true if the character belongs to a script without spaces between words: Han, kana, Thai,
/// Lao, Khmer or Burmese.
fn is_ideograph(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0E00..=0x0EFF
            | 0x1000..=0x109F
            | 0x1780..=0x17FF
            | 0x3040..=0x30FF
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x20000..=0x323AF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_words_whatever_they_look_like() {
        for (text, expected) in [
            ("cat", Some("\"cat\"")),
            (
                "Where is the retry delay?",
                Some("\"retry\" OR \"retry\" * OR \"delay\" OR \"delay\" *"),
            ),
            ("the of", Some("\"the\" OR \"of\"")),
            (
                "a\" OR b* NEAR(c) -d ^e {x}: y",
                Some(
                    "\"OR\" OR \"b\" OR \"NEAR\" OR \"NEAR\" * OR \"c\" OR \"d\" OR \"e\" OR \
                     \"x\" OR \"y\"",
                ),
            ),
            ("HostRule", Some("\"HostRule\" OR \"HostRule\" * OR \"Host\" OR \"Rule\"")),
            ("検索", Some("\"検 索\"")),
            ("", None),
            ("?! -- \"\"", None),
        ] {
            // `OR` is a stop word too, so it is not a term.
            let expected = expected.map(|text| text.replace("\"OR\" OR ", ""));
            assert_eq!(
                Query::read(text).as_ref().map(Query::expression),
                expected.as_deref(),
                "{text}"
            );
        }
    }

    /// Tests that finding duplicate words does not take quadratic time, which would be minutes for
    /// this query.
    #[test]
    fn a_query_of_any_length_has_at_most_48_words() {
        let text: String = (0..1_000_000).map(|number| format!("w{number} the ")).collect();
        let query = Query::read(&text).unwrap();
        let words = query.expression().split(" OR ").filter(|term| !term.ends_with('*'));
        let words: Vec<&str> = words.collect();
        assert_eq!((words.len(), words[47]), (48, "\"w47\""));
        let stop_words = "the of ".repeat(1_000_000);
        assert_eq!(Query::read(&stop_words).unwrap().expression(), "\"the\" OR \"of\"");
    }

    #[test]
    fn names_are_split_into_words() {
        for (text, expected) in [
            ("readFile of HTTPServer2", "read File HTTP Server2"),
            ("plain words", ""),
            ("全文検索 works", "全 文 検 索"),
            ("snake_case", ""),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
