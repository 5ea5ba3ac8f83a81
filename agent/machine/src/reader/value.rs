//! Reads the values in a call's arguments.

use super::{
    Note,
    arguments::{Parser, is_comment},
    header,
    quote::{self, Quote},
    text::{after_blanks, after_space, byte, char_at, line_end, run, slice},
};

impl<'a> Parser<'a> {
    /// Reads the string that starts with `quote`. Returns its raw content, or `None` if a strict
    /// parser finds no closing quote.
    pub(super) fn string(&mut self, quote: Quote) -> Option<&'a str> {
        let (end, after) = if !self.lenient {
            quote::close(self.text, quote)?
        } else if quote.is_triple {
            self.lenient_triple(quote)
        } else {
            self.lenient_close(quote)
        };
        self.at = after;
        Some(slice(self.text, quote.inside, end))
    }

    fn lenient_triple(&mut self, quote: Quote) -> (usize, usize) {
        if !self.hopeless {
            let ends_value = |(_, after): &(usize, usize)| {
                matches!(
                    char_at(self.text, after_space(self.text, *after)),
                    None | Some(',' | ')' | '）')
                ) || header::is_over(self.text, *after)
            };
            if let Some(found) = quote::triple_runs(self.text, quote).find(ends_value) {
                return found;
            }
            self.hopeless = true;
        }
        quote::close(self.text, quote).unwrap_or_else(|| self.unclosed(quote, self.text.len()))
    }

    /// Finds the closing quote of a string that may contain unescaped quotes. The closing quote is
    /// followed by a comma or the closing parenthesis, and is outside of parentheses opened within
    /// the string. Returns the end offsets of the content and of the closing quote.
    fn lenient_close(&mut self, quote: Quote) -> (usize, usize) {
        if self.hopeless {
            return quote::close(self.text, quote)
                .unwrap_or_else(|| self.unclosed(quote, self.text.len()));
        }
        let closers = quote::lenient_closers(quote.mark);
        let (mut depth, mut shallow, mut line, mut last) = (0_i64, None, None, '\0');
        let mut chars = slice(self.text, quote.inside, self.text.len()).char_indices();
        while let Some((offset, found)) = chars.next() {
            let end = quote.inside + offset;
            match found {
                '\\' if !quote.is_raw => {
                    chars.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                '\n' if depth == -1 && last == ')' && line.is_none() => {
                    line = Some(end);
                    if header::is_boundary(self.text, after_space(self.text, end)) {
                        return self.unclosed(quote, end);
                    }
                }
                found if closers.contains(&found) && self.ends_value(end + found.len_utf8()) => {
                    let candidate = (end, end + found.len_utf8());
                    if depth <= 0 {
                        return candidate;
                    }
                    shallow = shallow.or(Some(candidate));
                }
                _ => {}
            }
            if !matches!(found, ' ' | '\t') {
                last = found;
            }
        }
        self.hopeless = true;
        let first = shallow.or_else(|| quote::close(self.text, quote));
        match (first, line) {
            (Some(first), Some(line)) if line < first.0 => self.unclosed(quote, line),
            (Some(first), _) => first,
            (None, line) => self.unclosed(quote, line.unwrap_or(self.text.len())),
        }
    }

    /// Returns true if a value can end at `at`, that is, if it is followed by a comma, the closing
    /// parenthesis, another string or the end of the text.
    fn ends_value(&self, at: usize) -> bool {
        let next = after_space(self.text, at);
        match char_at(self.text, next) {
            None | Some(',' | '，' | ')' | '）') => true,
            Some(_) => {
                next > at && quote::at_offset(self.text, next).is_some()
                    || header::is_over(self.text, at)
            }
        }
    }

    /// Ends an unclosed string at `end`, or before the call's closing parenthesis if there is one.
    /// Returns the end offset of the content, and the offset at which parsing continues.
    fn unclosed(&mut self, quote: Quote, end: usize) -> (usize, usize) {
        self.note = Some(Note::UnclosedString);
        let content = without_tail(slice(self.text, quote.inside, end));
        let inside = quote.inside + content.len();
        // If there is a parenthesis, the list of arguments ends there.
        let rest = slice(self.text, inside, end);
        (inside, rest.find(')').map_or(end, |offset| inside + offset))
    }

    /// Reads the fenced value at the parser's position. Returns `None` if a strict parser finds no
    /// closing fence.
    pub(super) fn fenced(&mut self, mark: u8, length: usize) -> Option<String> {
        let line = line_end(self.text, self.at);
        let marks = char::from(mark).to_string().repeat(length);
        let inside = (self.at + length..=line).contains(&line).then_some(line + 1)?;
        let mut at = line;
        while at < self.text.len() {
            let start = after_blanks(self.text, at + 1);
            if slice(self.text, start, self.text.len()).starts_with(&marks)
                && !byte(self.text, start + length).is_ascii_alphanumeric()
            {
                let content = slice(self.text, inside, at);
                self.at = start + run(self.text, start, mark);
                return Some(content.to_owned());
            }
            at = line_end(self.text, at + 1);
        }
        if !self.lenient {
            return None;
        }
        self.note = Some(Note::UnclosedFence);
        let content = without_tail(slice(self.text, inside, self.text.len()));
        self.at = self.text.len();
        Some(content.to_owned())
    }

    /// Reads a JSON object or array, or a similar literal in another language. Returns `None` if a
    /// strict parser finds no closing bracket.
    pub(super) fn json(&mut self) -> Option<String> {
        let start = self.at;
        let (mut depth, mut parentheses, mut string, mut before) = (0_usize, 0_usize, 0_u8, b'{');
        let bytes = self.text.as_bytes();
        while let Some(&found) = bytes.get(self.at) {
            match found {
                b'\\' if string != 0 => self.at += 1,
                b'"' | b'\'' if string == found => string = 0,
                _ if string != 0 => {}
                b'"' => string = found,
                b'\'' if matches!(before, b'{' | b'[' | b'(' | b',' | b':') => string = found,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'(' => parentheses += 1,
                b')' if parentheses == 0 => break,
                b')' => parentheses -= 1,
                _ => {}
            }
            if !found.is_ascii_whitespace() {
                before = found;
            }
            self.at = (self.at + 1).min(bytes.len());
            if depth == 0 && string == 0 {
                return Some(slice(self.text, start, self.at).to_owned());
            }
        }
        self.lenient.then(|| slice(self.text, start, self.at).trim_end().to_owned())
    }

    /// Reads a value without quotes. The value ends before a comma or parenthesis that is not part
    /// of it, or at the end of the line. Returns `None` if a strict parser finds a comment, a
    /// double quote or a backtick.
    pub(super) fn bare(&mut self) -> Option<String> {
        let start = self.at;
        if !self.lenient && is_comment(self.text, start) {
            return None;
        }
        let mut depth = 0_usize;
        for (offset, found) in slice(self.text, start, self.text.len()).char_indices() {
            self.at = start + offset;
            match found {
                '\n' => break,
                ',' | ')' | '）' if depth == 0 && offset > 0 => break,
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '"' | '`' if !self.lenient => return None,
                // A string after a space indicates a missing comma.
                '"' if depth == 0 && slice(self.text, start, self.at).ends_with(' ') => break,
                _ => {}
            }
            self.at += found.len_utf8();
        }
        Some(slice(self.text, start, self.at).trim_end().to_owned())
    }
}

/// Removes a fence line, closing tags and the closing parenthesis from the end of an unclosed
/// string or fence.
pub(super) fn without_tail(text: &str) -> &str {
    let mut text = text.trim_end();
    loop {
        let last = text.rfind('\n').map_or(0, |at| at + 1);
        let line = slice(text, last, text.len()).trim_start();
        let is_fence =
            line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'));
        let is_tag = line.starts_with("</") && line.find('>') == Some(line.len() - 1);
        if !(is_fence || is_tag) || last == 0 {
            break;
        }
        text = slice(text, 0, last).trim_end();
    }
    let opened = text.bytes().filter(|&b| b == b'(').count();
    let closed = text.bytes().filter(|&b| b == b')').count();
    if closed > opened { text.strip_suffix(')').unwrap_or(text).trim_end() } else { text }
}
