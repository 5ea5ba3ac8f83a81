//! Makes output harmless for a terminal: characters that control it are printed as escapes.

use std::fmt::Write;

/// Returns true if a character controls the terminal, or hides or reorders the text around it. Line
/// ends and tabs count as text.
fn is_control(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks, embeddings, overrides and isolates; line and paragraph separators;
        // zero-width characters.
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

/// A filter that turns a stream of bytes into harmless text. A control character becomes an escape
/// such as `\u{1b}`, and a byte that is not UTF-8 becomes an escape such as `\x9b`. A carriage
/// return before a line end is dropped. The result does not depend on how the stream is divided
/// into chunks. An incomplete character is withheld, so that bytes of two streams never combine
/// into one character on the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    /// The bytes of an incomplete character.
    tail: Vec<u8>,
    /// If true, the last character was a carriage return, which is withheld.
    returned: bool,
}

impl Visible {
    /// Filters the next bytes and returns the text to print now.
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

    /// Ends the stream and returns the withheld text.
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
            c if is_control(c) => push(shown, c),
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

    /// Escapes a withheld carriage return that is not followed by a line end.
    fn end_return(&mut self, shown: &mut String) {
        if std::mem::take(&mut self.returned) {
            push(shown, '\r');
        }
    }
}

fn push(shown: &mut String, c: char) {
    shown.extend(c.escape_unicode());
}

/// Returns a string in a harmless form, which neither moves the cursor nor changes colours.
pub(crate) fn visible(text: &str) -> String {
    let mut filter = Visible::default();
    let mut shown = filter.feed(text.as_bytes());
    shown.push_str(&filter.finish());
    shown
}

/// Replaces the control characters in a JSON document with JSON escapes, such as `\u202e`.
pub(super) fn visible_json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in document.chars() {
        if is_control(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c)
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_control_the_terminal() {
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
    fn the_division_of_a_stream_does_not_change_its_text() {
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
    fn visible_json_is_the_same_document() {
        let document = serde_json::json!({"a": "\u{9b}\u{7f}\u{202e}\u{e0041}\u{1b}"});
        let shown = visible_json(&document.to_string());
        assert!(shown.is_ascii() && !shown.chars().any(char::is_control), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
    }
}
