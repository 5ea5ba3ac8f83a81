//! Builds the fields that a word expands to. Expanded values are split at field separators. Each
//! field records which parts of its text are quoted.

use crate::language::pattern::Fragment;

/// The fields built so far from a word. The last field is still open.
pub(crate) struct Fields {
    done: Vec<Vec<Fragment>>,
    open: Vec<Fragment>,
    /// If true, the open field exists even if it is empty.
    started: bool,
    /// Field separators, or `None` if values are not split.
    separators: Option<String>,
    /// If true, whitespace ended the previous field. A following non-whitespace separator belongs
    /// to the same delimiter.
    after_space: bool,
    /// If true, the current quotes contain an empty `$@`.
    empty_list: bool,
    size: u64,
}

/// The state of the fields before an opening `"`.
pub(super) struct QuoteStart {
    fields: usize,
    size: u64,
    empty_list: bool,
    started: bool,
}

impl Fields {
    pub(super) fn new(separators: Option<String>) -> Fields {
        Fields {
            done: Vec::new(),
            open: Vec::new(),
            started: false,
            separators,
            after_space: false,
            empty_list: false,
            size: 0,
        }
    }

    /// Returns true if values are split.
    pub(super) fn splits(&self) -> bool {
        self.separators.is_some()
    }

    /// Returns the total size of the fields so far, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn add(&mut self, text: &str, quoted: bool) {
        self.size += text.len() as u64;
        self.after_space = false;
        match self.open.last_mut() {
            Some(last) if last.quoted == quoted => last.text.push_str(text),
            _ => self.open.push(Fragment { text: text.into(), quoted }),
        }
    }

    /// Adds unquoted text from the script.
    pub(super) fn literal(&mut self, text: &str) {
        if !text.is_empty() {
            self.started = true;
            self.add(text, false);
        }
    }

    /// Adds quoted text. It starts a field even if it is empty.
    pub(super) fn quoted(&mut self, text: &str) {
        self.started = true;
        self.add(text, true);
    }

    /// Adds an unquoted expanded value and splits it at separators.
    pub(super) fn value(&mut self, text: &str) {
        let Some(separators) = self.separators.take() else {
            self.literal(text);
            return;
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let plain = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
            let (now, later) = rest.split_at(plain);
            if now.is_empty() {
                if matches!(c, ' ' | '\t' | '\n') {
                    if self.started {
                        self.end_field();
                        self.after_space = true;
                    }
                } else if self.started || !self.after_space {
                    self.started = true;
                    self.end_field();
                } else {
                    self.after_space = false;
                }
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            } else {
                self.literal(now);
                rest = later;
            }
        }
        self.separators = Some(separators);
    }

    /// Ends the open field, if there is one.
    pub(super) fn end_field(&mut self) {
        self.after_space = false;
        if std::mem::take(&mut self.started) {
            self.size += 16;
            self.done.push(std::mem::take(&mut self.open));
        } else {
            self.open.clear();
        }
    }

    /// Records that the current quotes contain an empty `$@`.
    pub(super) fn add_empty_list(&mut self) {
        self.empty_list = true;
    }

    /// Marks the start of double quotes. Returns the state that [`Fields::end_quotes`] needs.
    pub(super) fn begin_quotes(&mut self) -> QuoteStart {
        QuoteStart {
            fields: self.done.len(),
            size: self.size,
            empty_list: std::mem::take(&mut self.empty_list),
            started: self.started,
        }
    }

    /// Marks the end of double quotes. Even empty quotes form a field, unless they contain only an
    /// empty `$@`.
    pub(super) fn end_quotes(&mut self, before: QuoteStart) {
        let added = self.done.len() > before.fields
            || self.size > before.size
            || (self.started && !before.started);
        if added || !self.empty_list {
            self.started = true;
            if self.open.is_empty() {
                self.open.push(Fragment { text: String::new(), quoted: true });
            }
        }
        self.empty_list = before.empty_list;
    }

    /// Ends the open field and returns all fields.
    pub(super) fn finish(mut self) -> Vec<Vec<Fragment>> {
        self.end_field();
        self.done
    }
}

/// Returns a field as a string, without its quoting.
pub(super) fn text(field: Vec<Fragment>) -> String {
    let mut fragments = field.into_iter();
    let mut text = fragments.next().map(|fragment| fragment.text).unwrap_or_default();
    text.extend(fragments.map(|fragment| fragment.text));
    text
}

/// The quoting context in which parts of a word are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// Parts outside quotes.
    Unquoted,
    /// Parts inside double quotes.
    Quoted,
    /// Parts of `word` in an unquoted `${x:-word}`. Plain text is split like an expanded value.
    Operand,
}
