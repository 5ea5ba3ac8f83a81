//! Escapes text for a terminal: characters that a terminal would interpret are shown as escapes.

use std::fmt::Write;

/// Returns true if a terminal interprets a character, or if the character hides or reorders the
/// text around it. Line ends and tabs are text.
fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks, embeddings, overrides and isolates; line and paragraph separators;
        // characters without a width.
        '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => {
            true
        }
        '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        // C0, DEL and C1.
        c => c.is_control(),
    }
}

/// A filter that converts a stream of bytes to text that a terminal only displays. The stream may
/// be split anywhere. A character that a terminal would interpret becomes an escape such as
/// `\u{1b}`, and a byte that is not UTF-8 becomes one such as `\x9b`. A carriage return before a
/// line end is removed. A character is output only once all its bytes have arrived, so that two
/// streams cannot form a character together on the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    /// The first bytes of an incomplete character.
    tail: Vec<u8>,
    /// If true, the last character was a carriage return, which is not output yet.
    returned: bool,
}

impl Visible {
    /// Reads the next bytes, and returns the text to output now.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.tail);
        whole.extend_from_slice(bytes);
        let mut shown = String::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.show(&mut shown, c));
            let invalid = chunk.invalid();
            let unfinished =
                std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if unfinished && chunks.peek().is_none() {
                self.tail = invalid.to_owned();
            } else {
                self.escape(&mut shown, invalid);
            }
        }
        shown
    }

    /// Returns the text that was held back, at the end of the stream.
    pub(crate) fn finish(&mut self) -> String {
        let (mut shown, tail) = (String::new(), std::mem::take(&mut self.tail));
        self.end_return(&mut shown);
        self.escape(&mut shown, &tail);
        shown
    }

    fn show(&mut self, shown: &mut String, c: char) {
        if c == '\n' {
            self.returned = false;
        }
        self.end_return(shown);
        match c {
            '\r' => self.returned = true,
            c if acts(c) => push(shown, c),
            c => shown.push(c),
        }
    }

    fn escape(&mut self, shown: &mut String, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.end_return(shown);
        }
        for byte in bytes {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }

    /// Outputs a carriage return that is not followed by a line end, as an escape.
    fn end_return(&mut self, shown: &mut String) {
        if std::mem::take(&mut self.returned) {
            push(shown, '\r');
        }
    }
}

fn push(shown: &mut String, c: char) {
    shown.extend(c.escape_unicode());
}

/// Returns the text with escapes, so that it cannot move the cursor or change colours.
pub(crate) fn visible(text: &str) -> String {
    let mut filter = Visible::default();
    let mut shown = filter.feed(text.as_bytes());
    shown.push_str(&filter.finish());
    shown
}

/// Returns the same JSON document, with the characters that a terminal would interpret as JSON
/// escapes such as `\u202e`.
pub(super) fn visible_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in document.chars() {
        match acts(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_act_on_the_terminal() {
        for (text, shown) in [
            ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
            ("\x1b]52;c;aGk=\x07", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("a\u{9b}31m", "a\\u{9b}31m"),
            ("\u{202e}c\u{2066}d\u{2069}", "\\u{202e}c\\u{2066}d\\u{2069}"),
            ("line\r\nnext\rover", "line\nnext\\u{d}over"),
            ("d\te\n", "d\te\n"),
            ("\u{8}\u{7f}\0", "\\u{8}\\u{7f}\\u{0}"),
            (
                "\u{2028}\u{2029}\u{e0041}\u{200b}\u{feff}",
                "\\u{2028}\\u{2029}\\u{e0041}\\u{200b}\\u{feff}",
            ),
            ("naïve 漢字 👩‍👩‍👧 e\u{301}", "naïve 漢字 👩‍👩‍👧 e\u{301}"),
            ("\r\r\n\r", "\\u{d}\n\\u{d}"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn a_stream_shows_the_same_however_it_is_cut() {
        let bytes = b"a\xc2\x9bb\x9b[1m\xf0\x9f\x98\x80\r\n\xe2\x80\xaec\rd\xf0\x9fe\xff\xc3";
        let mut whole = Visible::default();
        let expected = whole.feed(bytes) + &whole.finish();
        assert_eq!(expected, "a\\u{9b}b\\x9b[1m😀\n\\u{202e}c\\u{d}d\\xf0\\x9fe\\xff\\xc3");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let mut filter = Visible::default();
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let shown: String = pieces.iter().map(|piece| filter.feed(piece)).collect();
                assert_eq!(shown + &filter.finish(), expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn json_stays_json() {
        let document = serde_json::json!({"a": "\u{9b}\u{7f}\u{202e}\u{e0041}\u{1b}"});
        let shown = visible_json(&document.to_string());
        assert!(shown.is_ascii() && !shown.chars().any(char::is_control), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
    }
}
