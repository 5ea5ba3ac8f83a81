//! Finds reasoning tags.

use super::text::{byte, slice, starts};

/// The names of tags that contain reasoning.
const NAMES: [&str; 7] =
    ["reasoning", "reason", "thinking", "think", "thoughts", "thought", "scratchpad"];

/// A reasoning tag. It occupies the byte range `start..end` of the answer.
#[derive(Clone, Copy)]
pub(super) struct Tag {
    pub(super) start: usize,
    pub(super) end: usize,
    name: usize,
    closes: bool,
    /// Index of the closing tag that matches this opening tag. `None` for a closing tag, or if no
    /// closing tag matches.
    partner: Option<usize>,
}

/// All reasoning tags of an answer, in order.
pub(super) struct Tags(Vec<Tag>);

impl Tags {
    /// Returns the first opening tag that starts at or after `at`.
    pub(super) fn open_after(&self, at: usize) -> Option<Tag> {
        let first = self.0.partition_point(|tag| tag.start < at);
        self.0.iter().skip(first).find(|tag| !tag.closes).copied()
    }

    /// Returns the closing tag of `open`: the next closing tag with the same name, or else the next
    /// closing tag with any name.
    pub(super) fn close_of(&self, open: Tag) -> Option<Tag> {
        self.0.get(open.partner?).copied()
    }

    /// Returns the answer's first reasoning tag if it is a closing tag, and `None` otherwise.
    pub(super) fn leading_close(&self) -> Option<Tag> {
        self.0.first().filter(|tag| tag.closes).copied()
    }

    /// Returns the closing tags in the range `from..to`.
    pub(super) fn closes_in(&self, from: usize, to: usize) -> impl Iterator<Item = Tag> {
        let first = self.0.partition_point(|tag| tag.start < from);
        self.0
            .iter()
            .skip(first)
            .take_while(move |tag| tag.end <= to)
            .filter(|tag| tag.closes)
            .copied()
    }
}

/// Finds all reasoning tags. A tag after a backtick is a mere mention and is skipped.
pub(super) fn tags(text: &str) -> Tags {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = slice(text, at, text.len()).find('<') {
        let start = at + found;
        at = start + 1;
        if let Some(tag) = tag_at(text, start) {
            at = tag.end;
            if start == 0 || byte(text, start - 1) != b'`' {
                tags.push(tag);
            }
        }
    }
    let mut next_of_name = [None; NAMES.len()];
    let mut next_of_any = None;
    for (index, tag) in tags.iter_mut().enumerate().rev() {
        let of_name = next_of_name.get_mut(tag.name);
        if tag.closes {
            next_of_any = Some(index);
            if let Some(slot) = of_name {
                *slot = next_of_any;
            }
        } else {
            tag.partner = of_name.and_then(|slot| *slot).or(next_of_any);
        }
    }
    Tags(tags)
}

/// Returns true if an opening reasoning tag begins at `at`.
pub(super) fn opens_at(text: &str, at: usize) -> bool {
    byte(text, at) == b'<' && tag_at(text, at).is_some_and(|tag| !tag.closes)
}

/// Maximum length of a tag's attributes, in bytes.
const MAX_ATTRIBUTES: usize = 120;

fn tag_at(text: &str, start: usize) -> Option<Tag> {
    let closes = byte(text, start + 1) == b'/';
    let begin = start + 1 + usize::from(closes);
    let (name, word) = NAMES.iter().enumerate().find(|(_, name)| {
        starts(text, begin, name) && !byte(text, begin + name.len()).is_ascii_alphanumeric()
    })?;
    let attributes = begin + word.len();
    let bytes = text.as_bytes().iter().skip(attributes).take(MAX_ATTRIBUTES);
    let length = bytes.take_while(|&&b| b != b'>' && b != b'<' && b != b'\n').count();
    let is_separated = length == 0 || matches!(byte(text, attributes), b' ' | b'\t' | b'/');
    let end = attributes + length;
    (is_separated && byte(text, end) == b'>').then_some(Tag {
        start,
        end: end + 1,
        name,
        closes,
        partner: None,
    })
}
