//! The lexer for multi-line input, which determines whether an input is complete.
//!
//! It examines only programs (the first line begins with `(`), quoted messages (they begin with
//! `"""`) and Markdown code fences. Prose is complete at the end of its line, regardless of quotes
//! and parentheses.

/// A partial input. Each line is scanned once, when it is added.
#[derive(Debug, Default)]
pub(super) struct Input {
    kind: Option<Kind>,
}

#[derive(Debug)]
enum Kind {
    Program {
        depth: usize,
        within: Within,
    },
    Quoted {
        open: bool,
    },
    /// Prose, and the code fence that is open, if any.
    Prose {
        fence: Option<Fence>,
    },
}

/// The context of a position in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Code,
    Text,
    Block,
    Comment { depth: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

/// The delimiter of a multi-line message.
pub(super) const QUOTES: &str = "\"\"\"";

impl Input {
    /// Creates an input that consists of the lines of `text`.
    pub(super) fn of(text: &str) -> Input {
        let mut input = Input::default();
        text.lines().for_each(|line| input.feed(line));
        input
    }

    /// Adds the next line, without its line end.
    pub(super) fn feed(&mut self, line: &str) {
        let kind = match &mut self.kind {
            Some(kind) => kind,
            None if line.trim().is_empty() => return,
            none => none.insert(Kind::of(line)),
        };
        match kind {
            Kind::Program { depth, within } => program(line.as_bytes(), depth, within),
            Kind::Quoted { open } => *open ^= line.matches(QUOTES).count() % 2 == 1,
            Kind::Prose { fence } => *fence = after(line, *fence),
        }
    }

    /// Returns true if the input is incomplete.
    pub(super) fn is_open(&self) -> bool {
        match &self.kind {
            None => false,
            Some(Kind::Program { depth, within }) => *depth > 0 || *within != Within::Code,
            Some(Kind::Quoted { open }) => *open,
            Some(Kind::Prose { fence }) => fence.is_some(),
        }
    }
}

impl Kind {
    fn of(first: &str) -> Kind {
        let first = first.trim_start();
        if first.starts_with('(') {
            Kind::Program { depth: 0, within: Within::Code }
        } else if first.starts_with(QUOTES) {
            Kind::Quoted { open: false }
        } else {
            Kind::Prose { fence: None }
        }
    }
}

/// Scans a line of a program.
fn program(line: &[u8], depth: &mut usize, within: &mut Within) {
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let next = line.get(at + 1).copied();
        let rest = line.split_at(at).1;
        at += match (*within, byte, next) {
            (Within::Code, b';', Some(b';')) => return,
            (Within::Code, b'(', Some(b';')) => enter(within, Within::Comment { depth: 1 }, 2),
            (Within::Code, b'(', _) => {
                *depth += 1;
                1
            }
            (Within::Code, b')', _) => {
                *depth = depth.saturating_sub(1);
                1
            }
            (Within::Code, b'"', _) if rest.starts_with(QUOTES.as_bytes()) => {
                enter(within, Within::Block, 3)
            }
            (Within::Code, b'"', _) => enter(within, Within::Text, 1),
            (Within::Text | Within::Block, b'\\', _) => 2,
            (Within::Text, b'"', _) => enter(within, Within::Code, 1),
            (Within::Block, b'"', _) => {
                // In a longer run of quotes, the last three close the string.
                let quotes = rest.iter().take_while(|byte| **byte == b'"').count();
                enter(within, if quotes >= 3 { Within::Code } else { Within::Block }, quotes)
            }
            (Within::Comment { depth }, b'(', Some(b';')) => {
                enter(within, Within::Comment { depth: depth + 1 }, 2)
            }
            (Within::Comment { depth: 1 }, b';', Some(b')')) => enter(within, Within::Code, 2),
            (Within::Comment { depth }, b';', Some(b')')) => {
                enter(within, Within::Comment { depth: depth - 1 }, 2)
            }
            _ => 1,
        };
    }
}

/// Changes the context and returns the number of bytes to skip.
fn enter(within: &mut Within, what: Within, bytes: usize) -> usize {
    *within = what;
    bytes
}

/// Returns the fence that is open after a line, if any. `open` is the fence that was open before
/// the line.
fn after(line: &str, open: Option<Fence>) -> Option<Fence> {
    let line = line.trim();
    let Some(mark) = line.bytes().next().filter(|byte| matches!(byte, b'`' | b'~')) else {
        return open;
    };
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    let info = line.split_at(length).1;
    match open {
        // A fence within one line is inline code.
        None if length >= 3 && !info.contains('`') => Some(Fence { mark, length }),
        Some(fence) if fence.mark == mark && length >= fence.length && info.is_empty() => None,
        open => open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_waits_for_more() {
        for text in [
            "(call $sys.resv",
            "  (i32.const 0",
            "(call $sys.resv \"a)",
            "(call $sys.resv \"a\\\")",
            "(call $sys.resv \"\"\"a\")\"\")",
            "(; a comment )",
            "(; (; nested ;)",
            "(a ;; )",
            "(\n\n)(",
            "\"\"\"a message",
            "\"\"\"\nof two lines\n",
            "Run this:\n```wat\n(i32.const 0)",
            "```",
            "~~~~\n~~~",
            "```\n~~~",
            "```\n``` more",
        ] {
            assert!(Input::of(text).is_open(), "{text:?}");
        }
    }

    #[test]
    fn what_is_whole_does_not() {
        for text in [
            "",
            "   ",
            "don't wait",
            "fine :( or :-(",
            "what is \"this",
            "a (remark",
            "use ``` as a fence",
            "```inline```",
            "(i32.const 0)",
            "(call $sys.resv \"(\") (i32.const 0)",
            "(call $sys.resv \"\\\"(\")",
            "(call $sys.resv \"\"\"a \" \"\" (\"\"\"\")",
            "(a) ;; (",
            "(; a comment ;)",
            "(; (; nested ;) ;)",
            "(a))",
            "(\n)",
            "\"\"\"a message\"\"\"",
            "\"\"\"\nof two lines\n\"\"\"",
            "```wat\n(\n```",
            "````\n```\n````",
            "~~~\ncode\n~~~~",
            "\n(a)",
        ] {
            assert!(!Input::of(text).is_open(), "{text:?}");
        }
    }
}
