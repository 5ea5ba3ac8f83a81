//! Matching of the table's patterns against a text of which the end may still be missing.

/// The reason why a form is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text does not have the form.
    Not,
    /// The text so far does not decide it.
    More,
}

/// A position in a text that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// If true, no text follows.
    pub(super) is_end: bool,
}

/// Maximum length of a tag's namespace, in bytes.
const MAX_NAMESPACE: usize = 16;

impl<'t> Cursor<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns the next character.
    ///
    /// # Errors
    /// If there is none, or none yet.
    pub(super) fn next(&mut self) -> Result<char, Stop> {
        let next = self.peek().ok_or_else(|| self.missing())?;
        self.at += next.len_utf8();
        Ok(next)
    }

    /// Returns the reason why a form is not read at the end of the text.
    pub(super) fn missing(&self) -> Stop {
        if self.is_end { Stop::Not } else { Stop::More }
    }

    /// Skips whitespace and the characters `also`.
    ///
    /// # Errors
    /// If more of them may follow.
    pub(super) fn skip(&mut self, also: &[char]) -> Result<(), Stop> {
        let rest = self.rest();
        let bare = rest.trim_start_matches(|c: char| c.is_whitespace() || also.contains(&c));
        self.at = self.text.len() - bare.len();
        if bare.is_empty() && !self.is_end { Err(Stop::More) } else { Ok(()) }
    }

    /// Skips the pattern if it is next. Returns true if it was.
    ///
    /// # Errors
    /// If the text ends within the pattern and more may follow.
    pub(super) fn take(&mut self, pattern: &str) -> Result<bool, Stop> {
        if self.differs(pattern) {
            return Ok(false);
        }
        let mut found = *self;
        for wanted in pattern.chars() {
            match wanted {
                ' ' => found.skip(&[])?,
                '~' => found.take_namespace()?,
                _ => {
                    let Some(next) = found.peek() else {
                        return if self.is_end { Ok(false) } else { Err(Stop::More) };
                    };
                    let length = match (wanted, next) {
                        ('▁', '\\') => 1 + usize::from(found.rest().starts_with("\\_")),
                        ('▁', '▁' | '_' | ' ') | ('｜', '｜' | '|') => next.len_utf8(),
                        _ if wanted == next => next.len_utf8(),
                        _ => return Ok(false),
                    };
                    found.at += length;
                    // Some models double the bars.
                    if wanted == '｜' && matches!(found.peek(), Some('｜' | '|')) {
                        found.next()?;
                    }
                }
            }
        }
        self.at = found.at;
        Ok(true)
    }

    /// Skips one of the patterns if it is next. Returns true if it was.
    ///
    /// # Errors
    /// The same as for [`Cursor::take`].
    pub(super) fn take_any(&mut self, patterns: &[&str]) -> Result<bool, Stop> {
        for pattern in patterns {
            if self.take(pattern)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if one of the first two bytes shows that the pattern is not next. Most patterns
    /// are ruled out here.
    fn differs(&self, pattern: &str) -> bool {
        let mut next = self.text.as_bytes().iter().skip(self.at);
        for wanted in pattern.bytes().take(2) {
            let is_plain = wanted.is_ascii() && !matches!(wanted, b' ' | b'~');
            match next.next() {
                Some(found) if is_plain && *found != wanted => return true,
                // No name can follow the namespace.
                Some(found) if wanted == b'~' && !found.is_ascii_alphanumeric() => return true,
                Some(_) if is_plain => {}
                _ => return false,
            }
        }
        false
    }

    fn take_namespace(&mut self) -> Result<(), Stop> {
        let rest = self.rest();
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let after = rest.get(word..).unwrap_or_default();
        if after.is_empty() && word <= MAX_NAMESPACE && !self.is_end {
            return Err(Stop::More);
        }
        if (1..=MAX_NAMESPACE).contains(&word) && after.starts_with(':') {
            self.at += word + 1;
        }
        Ok(())
    }

    /// Skips a closing tag if it is next: `</tool_call>`, `<|/tool_call|>` or `[/TOOL_CALLS]`.
    /// Returns true if it was.
    ///
    /// # Errors
    /// If the text ends within the tag and more may follow.
    pub(super) fn take_closing_tag(&mut self) -> Result<bool, Stop> {
        const MAX_NAME: usize = 40;
        const TAGS: &[(&str, &str)] = &[("</", ">"), ("<|/", "|>"), ("[/", "]")];
        for (opening, closing) in TAGS {
            let mut found = *self;
            if !found.take(opening)? {
                continue;
            }
            let rest = found.rest();
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
            let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            if length == 0 && !rest.is_empty() || length > MAX_NAME {
                continue;
            }
            found.at += length;
            if found.take(closing)? {
                self.at = found.at;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves to the first of the patterns and returns its end. The patterns begin with `<`.
    ///
    /// # Errors
    /// If there is none, or none yet.
    pub(super) fn find(&mut self, patterns: &[&str]) -> Result<usize, Stop> {
        while let Some(offset) = self.rest().find('<') {
            self.at += offset;
            let mut end = *self;
            if end.take_any(patterns)? {
                return Ok(end.at);
            }
            self.at += 1;
        }
        self.at = self.text.len();
        Err(self.missing())
    }
}
