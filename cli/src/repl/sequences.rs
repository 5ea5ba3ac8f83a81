//! The sequences of modified keys that the line editor does not know, such as those of Shift-Enter.
//!
//! The line editor reports all of them as the same unknown key, and only its log has their bytes. So
//! this module is the receiver of that log while a line is read. Of the log, it keeps the last
//! unknown sequence, and nothing else.

use log::{LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

/// The source of the log.
const EDITOR: &str = "rustyline";

/// The beginning of a message of the log about an unknown sequence.
const UNKNOWN: &str = "unsupported esc sequence: \\E[";

/// The sequence of Shift-Enter in the keyboard protocol of kitty, after `ESC [`.
const KITTY: &str = "13;2u";

/// The sequence of Shift-Enter of xterm (`modifyOtherKeys`), after `ESC [`.
const XTERM: &str = "27;2;13~";

/// The beginning of the sequences of xterm. The line editor takes the rest for typed characters.
const XTERM_BEGIN: &str = "27;";

/// Maximum length of a sequence of xterm, in bytes.
const MAX_LENGTH: usize = 20;

static LAST: Mutex<Option<String>> = Mutex::new(None);

struct EditorLog;

impl Log for EditorLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == EDITOR
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let message = record.args().to_string();
            if let Some(sequence) = message.strip_prefix(UNKNOWN) {
                *LAST.lock() = Some(sequence.to_owned());
            }
        }
    }

    fn flush(&self) {}
}

/// A guard while a line is read.
pub(super) struct Listening(());

/// Receives the line editor's log until the returned guard is dropped.
pub(super) fn listen() -> Listening {
    // If the process has another receiver, unknown keys do nothing.
    drop(log::set_logger(&EditorLog));
    log::set_max_level(LevelFilter::Debug);
    Listening(())
}

impl Drop for Listening {
    fn drop(&mut self) {
        log::set_max_level(LevelFilter::Off);
    }
}

/// The part of a key's sequence that was received so far, while the rest follows as characters.
#[derive(Default)]
pub(super) struct Sequence(String);

/// The meaning of a key that belongs to an unknown sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The key completes the sequence of Shift-Enter.
    ShiftEnter,
    /// The key belongs to another sequence, or to one that is incomplete.
    Ignored,
}

impl Sequence {
    /// Begins the sequence that the line editor reported last as an unknown key.
    pub(super) fn begin(&mut self) -> Part {
        self.begin_with(&LAST.lock().take().unwrap_or_default())
    }

    fn begin_with(&mut self, bytes: &str) -> Part {
        self.0.clear();
        if bytes == KITTY {
            return Part::ShiftEnter;
        }
        if bytes.starts_with(XTERM_BEGIN) && bytes.ends_with(';') {
            bytes.clone_into(&mut self.0);
        }
        Part::Ignored
    }

    /// Adds a typed character. Returns `None` if it does not belong to a sequence.
    pub(super) fn add(&mut self, typed: char) -> Option<Part> {
        let belongs = typed.is_ascii_digit() || typed == '~';
        if self.0.is_empty() || !belongs || self.0.len() >= MAX_LENGTH {
            self.0.clear();
            return None;
        }
        self.0.push(typed);
        let is_shift_enter = self.0 == XTERM;
        if typed == '~' {
            self.0.clear();
        }
        Some(if is_shift_enter { Part::ShiftEnter } else { Part::Ignored })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the meaning of the last key of a sequence, and the characters that are typed text.
    fn read(begin: &str, rest: &str) -> (Part, String) {
        let mut sequence = Sequence::default();
        let mut last = sequence.begin_with(begin);
        let mut typed = String::new();
        for c in rest.chars() {
            match sequence.add(c) {
                Some(part) => last = part,
                None => typed.push(c),
            }
        }
        (last, typed)
    }

    #[test]
    fn only_shift_enter_begins_a_line_and_no_sequence_is_typed_as_text() {
        for (begin, rest, meaning, typed) in [
            ("13;2u", "ab", Part::ShiftEnter, "ab"),
            ("13;5u", "ab", Part::Ignored, "ab"),
            ("27;2;", "13~ab", Part::ShiftEnter, "ab"),
            ("27;5;", "13~1~", Part::Ignored, "1~"),
            ("27;6;", "97~", Part::Ignored, ""),
            ("27;2;", "x13~", Part::Ignored, "x13~"),
            ("25~", "13~", Part::Ignored, "13~"),
            ("", "13~", Part::Ignored, "13~"),
        ] {
            assert_eq!(read(begin, rest), (meaning, typed.to_owned()), "{begin}{rest}");
        }
    }
}
