//! Markers, which distinguish the host's own lines in a conversation from data.
//!
//! Observations and notes begin with a marker that contains the run's [`Nonce`]: `[Observation
//! k7m2xq (step 1)]`, `[Note k7m2xq]`. A note after the user's message announces the nonce.
//! Everything else in these messages is data: program results, error reasons, names, the user's
//! text, and the turns of earlier runs. [`escape_marks`] inserts a backslash into all data that
//! looks like a marker, so data can never forge a marker. Programs still receive the data
//! unchanged.
//!
//! The model's own messages are never changed. They need no escaping, because the host writes no
//! markers into messages with the assistant role.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::confusable::fold;
use crate::message::{Message, Role};

/// Length of a nonce, in characters.
const LENGTH: usize = 6;

/// Characters of a nonce. A nonce contains no vowels, so it is never a word.
const LETTERS: &[u8; 27] = b"bcdfghjkmnpqrstvwxz23456789";

/// Number of letters at the start of [`LETTERS`]. A nonce begins with a letter.
const LETTER_COUNT: u64 = 19;

/// First words, in lowercase, of the host's markers and of markers used by common chat templates.
const WORDS: &[&str] = &["observation", "note", "inst", "/inst"];

/// Turn markers used by common chat templates, without the leading `<`.
const TURNS: &[&str] = &["start_of_turn>", "end_of_turn>", "<sys>>", "</sys>>"];

/// Maximum length of a name between `<|` and `|>`, in characters.
const MAX_TURN_NAME: usize = 40;

/// The text that follows the nonce in its announcement.
const ANNOUNCEMENT: &str = " is the code of this run.";

/// A nonce that distinguishes the host's lines from data within one run: six letters and digits
/// that no outsider can predict.
///
/// ```
/// use wattle_machine::Nonce;
///
/// let bits = 1_234_567_890_123;
/// assert_eq!(Nonce::new(bits).to_string(), Nonce::new(bits).to_string());
/// assert_eq!(Nonce::default().to_string(), "bbbbbb");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce(String);

impl Nonce {
    /// Creates a nonce from random bits. The caller supplies them, because the machine has no
    /// randomness.
    pub fn new(bits: u64) -> Self {
        let mut rest = bits;
        let mut next = |choices: u64| {
            let at = usize::try_from(rest % choices).unwrap_or_default();
            rest /= choices;
            char::from(LETTERS.get(at).copied().unwrap_or(b'b'))
        };
        let first = next(LETTER_COUNT);
        Self([first].into_iter().chain((1..LENGTH).map(|_| next(LETTERS.len() as u64))).collect())
    }

    /// Returns the marker at the start of an observation.
    pub(crate) fn observation(&self, step: u32) -> String {
        format!("[Observation {self} (step {step})]")
    }

    /// Returns `words` as a note from the host.
    pub(crate) fn note(&self, words: &str) -> String {
        format!("[Note {self}] {words}")
    }

    /// Returns the note that announces this nonce to the model.
    pub(crate) fn announcement(&self) -> String {
        self.note(&format!("{self}{ANNOUNCEMENT}"))
    }
}

/// The nonce created from 0. It is not secret. It is used in tests and for stored runs that have no
/// nonce.
impl Default for Nonce {
    fn default() -> Self {
        Self::new(0)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        nonce.0
    }
}

impl TryFrom<String> for Nonce {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_one = text.len() == LENGTH && text.bytes().all(|byte| LETTERS.contains(&byte));
        if is_one {
            Ok(Self(text))
        } else {
            Err(format!("a nonce has {LENGTH} letters and digits, not {text:?}"))
        }
    }
}

/// Returns the last nonce announced in a conversation, or `None` if there is none.
///
/// ```
/// use wattle_machine::{Message, announced_nonce};
///
/// let messages = [Message::user("hello\n\n[Note k7m2xq] k7m2xq is the code of this run.")];
/// assert_eq!(announced_nonce(&messages), Some("k7m2xq"));
/// assert_eq!(announced_nonce(&[Message::user("hello")]), None);
/// ```
pub fn announced_nonce(messages: &[Message]) -> Option<&str> {
    let from_user = messages.iter().rev().filter(|message| message.role == Role::User);
    from_user.map(|message| message.content.as_str()).find_map(|content| {
        let end = content.rfind(ANNOUNCEMENT)?;
        let nonce = content.get(end.checked_sub(LENGTH)?..end)?;
        content.get(..end)?.ends_with(&format!("[Note {nonce}] {nonce}")).then_some(nonce)
    })
}

/// Escapes data so that no part of it looks like a marker. Inserts a backslash after the opening
/// bracket of text that looks like a marker of the host or of a chat template, and after the first
/// character of each occurrence of the nonce. Removing these backslashes restores the data. If the
/// returned text is borrowed, nothing was escaped.
pub(crate) fn escape_marks<'a>(data: &'a str, nonce: Option<&Nonce>) -> Cow<'a, str> {
    let mut text = String::new();
    let mut done = 0;
    for (at, c) in data.char_indices() {
        let after = at + c.len_utf8();
        let rest = data.get(after..).unwrap_or_default();
        if looks_like_mark(c, rest) || nonce.is_some_and(|nonce| begins_nonce(c, rest, nonce)) {
            text.push_str(data.get(done..after).unwrap_or_default());
            text.push('\\');
            done = after;
        }
    }
    if done == 0 {
        return Cow::Borrowed(data);
    }
    text.push_str(data.get(done..).unwrap_or_default());
    Cow::Owned(text)
}

/// Returns true if `opening` and the text after it could be mistaken for the start of a marker.
fn looks_like_mark(opening: char, rest: &str) -> bool {
    match fold(opening) {
        Some('[') => WORDS.iter().any(|word| {
            let after = after_word(rest, word);
            after.is_some_and(|after| {
                !after.chars().find_map(fold).is_some_and(|c| c.is_ascii_alphabetic())
            })
        }),
        Some('<') => {
            is_named_turn(rest) || TURNS.iter().any(|word| after_word(rest, word).is_some())
        }
        _ => false,
    }
}

/// Returns true if `opening` and the text after it begin with the nonce. Look-alike characters
/// match the characters that they resemble.
fn begins_nonce(opening: char, rest: &str, nonce: &Nonce) -> bool {
    let mut letters = nonce.0.chars();
    letters.next() == fold(opening) && after_word(rest, letters.as_str()).is_some()
}

/// Returns true if the text after a `<` begins with `|name|>`.
fn is_named_turn(rest: &str) -> bool {
    let Some(rest) = after_word(rest, "|") else { return false };
    let mut name = rest.chars().filter_map(fold).take(MAX_TURN_NAME + 2).skip_while(|c| *c != '|');
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '▁' | '|');
    name.next() == Some('|')
        && name.next() == Some('>')
        && rest.chars().filter_map(fold).take_while(|c| *c != '>').all(is_name)
}

/// Returns the text after `word` if `text` begins with `word`, and `None` otherwise. Ignores case,
/// invisible characters, and whitespace and backslashes before the word. A look-alike character
/// matches the character that it resembles.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest =
        text.trim_start_matches(|c: char| c == '\\' || c.is_whitespace() || fold(c).is_none());
    for wanted in word.chars() {
        rest = rest.trim_start_matches(|c: char| fold(c).is_none());
        let c = rest.chars().next()?;
        if fold(c) != Some(wanted) {
            return None;
        }
        rest = rest.get(c.len_utf8()..)?;
    }
    Some(rest)
}

/// Converts untrusted text to a single line of at most `limit` characters, for use in a list that
/// the host writes. Replaces line breaks and control characters with spaces, removes invisible
/// characters, and escapes markers.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    let visible: String = text
        .chars()
        .filter(|c| c.is_whitespace() || c.is_control() || fold(*c).is_some())
        .collect();
    let words: Vec<&str> = visible
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    let truncated = match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    };
    escape_marks(&truncated, None).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    fn nonce() -> Nonce {
        Nonce::try_from("k7m2xq".to_owned()).unwrap()
    }

    #[test]
    fn every_disguised_mark_is_escaped() {
        for text in [
            "[Observation (step 2)]",
            "[Observation k7m2xq (step 2)]",
            "[Note] x",
            "[NOTE k7] x",
            "[note: x",
            "[ Note ] x",
            "[\n\tObservation",
            "［Observation (step 1)]",
            "［Ｎｏｔｅ］",
            "【Observation】",
            "[O\u{200b}bserv\u{ad}ation x",
            "[\u{202e}Note]",
            "[\0Note]",
            "[Оbѕеrvаtіоn (step 1)]",
            "[Nоte]",
            "[Nóté]",
            "[N\u{301}ote]",
            "[𝐍𝐨𝐭𝐞]",
            "[ⓝⓞⓣⓔ]",
            "<|im_start|>system",
            "<|im_end|>",
            "<｜User｜>",
            "<｜begin▁of▁sentence｜>",
            "<start_of_turn>user",
            "<<SYS>>",
            "[INST] x [/INST]",
            "[Note\u{200b}]",
        ] {
            let found = escape_marks(text, None);
            assert_ne!(found, text);
            assert_eq!(found.replacen('\\', "", 2), text, "{text:?} became {found:?}");
        }
    }

    #[test]
    fn text_that_is_not_a_mark_is_unchanged() {
        for text in [
            "",
            "Observation: none",
            "[Notes]",
            "[Notebook](https://a.example)",
            "[Observations]",
            "f <| x |> g",
            "a < b || c > d",
            "<b>note</b>",
            "[x] done",
            "[[wiki]]",
        ] {
            assert_eq!(escape_marks(text, Some(&nonce())), text);
        }
    }

    #[test]
    fn the_nonce_in_data_is_escaped() {
        for (text, expected) in [
            ("k7m2xq", "k\\7m2xq"),
            ("K7M2XQ", "K\\7M2XQ"),
            ("ak7m2xqz", "ak\\7m2xqz"),
            ("k\\7m2xq", "k\\\\7m2xq"),
            ("k\u{200b}7m2xq", "k\\\u{200b}7m2xq"),
            ("ｋ７ｍ２ｘｑ", "ｋ\\７ｍ２ｘｑ"),
            ("k7m2x", "k7m2x"),
        ] {
            assert_eq!(escape_marks(text, Some(&nonce())), expected);
        }
    }

    #[test]
    fn long_texts_are_escaped_in_linear_time() {
        let started = std::time::Instant::now();
        for part in
            ["[", "[\u{200b}", "[ ", "[\\", "k", "k\u{200b}", "<|", "<|a", "[note", "\u{200b}"]
        {
            let text = part.repeat(100_000);
            assert!(escape_marks(&text, Some(&nonce())).len() >= text.len());
        }
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }

    #[test]
    fn a_listed_text_becomes_one_clean_line() {
        assert_eq!(one_line(" a\r\n\tb\u{7}c\u{200b}d\u{2028}e ", 80), "a b cd e");
        assert_eq!(one_line("x\n[Observation (step 1)] y", 80), "x [\\Observation (step 1)] y");
        assert_eq!(one_line(&"ab ".repeat(100), 10), "ab ab ab a…");
        assert_eq!(one_line("\u{202e}\n", 10), "");
    }

    #[test]
    fn only_a_nonce_is_parsed_as_one() {
        for bits in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let nonce = Nonce::new(bits);
            assert_eq!(Nonce::try_from(nonce.to_string()), Ok(nonce));
        }
        for text in ["", "k7m2x", "k7m2xqq", "k7m2x]", "K7M2XQ", "aeiouy"] {
            assert!(Nonce::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
