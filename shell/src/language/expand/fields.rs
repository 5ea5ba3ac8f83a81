//! Building the fields of a word: text with its quoting, split at separators in expanded values.

use crate::language::pattern::Fragment;

/// Fields, the last of which is still open.
pub(crate) struct Fields {
    done: Vec<Vec<Fragment>>,
    open: Vec<Fragment>,
    /// The open field counts even if it is empty.
    started: bool,
    /// The separators; nothing where values are not split.
    separators: Option<String>,
    /// A field was ended by blanks: one other separator that follows belongs to them.
    after_blank: bool,
    /// An empty `$@` was met.
    empty_list: bool,
    size: u64,
}

/// What was there before a `"`.
pub(super) struct Before {
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
            after_blank: false,
            empty_list: false,
            size: 0,
        }
    }

    /// Whether values are split.
    pub(super) fn splits(&self) -> bool {
        self.separators.is_some()
    }

    /// The bytes so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn add(&mut self, text: &str, quoted: bool) {
        self.size += text.len() as u64;
        self.after_blank = false;
        match self.open.last_mut() {
            Some(last) if last.quoted == quoted => last.text.push_str(text),
            _ => self.open.push(Fragment { text: text.into(), quoted }),
        }
    }

    /// Adds text of the script that was not quoted.
    pub(super) fn literal(&mut self, text: &str) {
        if !text.is_empty() {
            self.started = true;
            self.add(text, false);
        }
    }

    /// Adds text that stands for itself; even if it is empty there is a field.
    pub(super) fn quoted(&mut self, text: &str) {
        self.started = true;
        self.add(text, true);
    }

    /// Adds the value of an expansion that was not quoted.
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
                        self.after_blank = true;
                    }
                } else if self.started || !self.after_blank {
                    self.started = true;
                    self.end_field();
                } else {
                    self.after_blank = false;
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
        self.after_blank = false;
        if std::mem::take(&mut self.started) {
            self.size += 16;
            self.done.push(std::mem::take(&mut self.open));
        } else {
            self.open.clear();
        }
    }

    /// Notes that a list without elements stood here.
    pub(super) fn nothing(&mut self) {
        self.empty_list = true;
    }

    pub(super) fn begin_quotes(&mut self) -> Before {
        Before {
            fields: self.done.len(),
            size: self.size,
            empty_list: std::mem::take(&mut self.empty_list),
            started: self.started,
        }
    }

    /// Ends double quotes: they make a field, unless they hold nothing but empty lists.
    pub(super) fn end_quotes(&mut self, before: Before) {
        let added = self.done.len() > before.fields || self.size > before.size || (self.started && !before.started);
        if added || !self.empty_list {
            self.started = true;
            if self.open.is_empty() {
                self.open.push(Fragment { text: String::new(), quoted: true });
            }
        }
        self.empty_list = before.empty_list;
    }

    pub(super) fn finish(mut self) -> Vec<Vec<Fragment>> {
        self.end_field();
        self.done
    }
}

/// The text of a field.
pub(super) fn text(field: Vec<Fragment>) -> String {
    let mut fragments = field.into_iter();
    let mut text = fragments.next().map(|fragment| fragment.text).unwrap_or_default();
    text.extend(fragments.map(|fragment| fragment.text));
    text
}

/// Rule by which the parts of a word are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    /// Outside quotes.
    Unquoted,
    /// Inside double quotes.
    Quoted,
    /// In the word of an unquoted `${x:-word}`: its plain text is split like an expanded value.
    Operand,
}
