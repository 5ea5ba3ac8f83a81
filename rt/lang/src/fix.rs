//! How a fault is put right: edits to the author's text, and how sure they are.

use std::ops::Range;

use serde::Serialize;

use crate::diagnostic::clamp;
use crate::truncate::excerpt;

/// How sure it is that a [`Fix`] gives the program that its author meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The text had no meaning, since it was rejected, and this is the only reading of it: it may be applied unasked.
    Safe,
    /// One reading of several: for the author to decide on.
    Likely,
}

/// One piece of the text that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced, in bytes of the source; empty for an insertion.
    pub span: Range<u32>,
    /// What stands there afterwards.
    pub text: String,
}

/// Edits that put a fault right. None of them adds or removes a line, so places in the text stay what they are for
/// everything that is told about it later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What changes, such as `` `$http.fetch` → `$http.get` ``.
    pub description: String,
    /// The edits, in the order of the text; they do not overlap.
    pub edits: Vec<Edit>,
    /// How sure it is.
    pub certainty: Certainty,
}

impl Fix {
    /// The text with the edits made.
    #[must_use]
    pub fn apply(&self, source: &str) -> String {
        let mut text = String::with_capacity(source.len() + 64);
        let mut at = 0;
        for edit in &self.edits {
            text.push_str(source.get(at..edit.span.start as usize).unwrap_or(""));
            text.push_str(&edit.text);
            at = edit.span.end as usize;
        }
        text.push_str(source.get(at..).unwrap_or(""));
        text
    }
}

/// The most edits of one fix: what takes more is for the author to write anew.
const MAX_EDITS: usize = 256;

/// A fix as the place that finds a fault knows it.
#[derive(Clone, Debug)]
pub(super) struct ProposedFix {
    pub(super) change: Change,
    pub(super) certainty: Certainty,
}

/// What a [`ProposedFix`] changes.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// What the fault's span holds becomes this.
    Replace(String),
    /// This goes before and that goes after what the span holds.
    Wrap(String, String),
    /// Pieces anywhere; they do not overlap.
    Edits(Vec<(Range<usize>, String)>),
}

impl Change {
    /// Text before and after what the span holds.
    pub(super) fn wrap(before: impl Into<String>, after: impl Into<String>) -> Change {
        Change::Wrap(before.into(), after.into())
    }
}

impl ProposedFix {
    /// The fix of a fault with that span; `None` where it would change nothing, or the number of lines, or too many places.
    pub(super) fn resolve(self, source: &str, span: &Range<usize>) -> Option<Fix> {
        let cut = |span: &Range<usize>| source.get(span.clone()).unwrap_or("");
        let mut description = None;
        let mut edits = match self.change {
            Change::Replace(text) => vec![(span.clone(), text)],
            Change::Wrap(before, after) => {
                let inner = excerpt(cut(span));
                description = Some(format!("`{inner}` → `{before}{inner}{after}`"));
                vec![(span.start..span.start, before), (span.end..span.end, after)]
            }
            Change::Edits(edits) => edits,
        };
        edits.retain(|(span, text)| cut(span) != text);
        if edits.len() > MAX_EDITS {
            return None;
        }
        edits.sort_by_key(|(span, _)| (span.start, span.end));
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let apart = edits.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a.end <= b.start));
        let inside = edits.iter().all(|(span, _)| source.get(span.clone()).is_some());
        let same_lines = edits.iter().all(|(span, text)| lines(cut(span)) == lines(text));
        if edits.is_empty() || !apart || !inside || !same_lines {
            return None;
        }
        let each = || edits.iter().map(|(span, text)| change(cut(span), text)).collect::<Vec<_>>().join(", ");
        let description = description.unwrap_or_else(each);
        let edit = |(span, text): (Range<usize>, String)| Edit { span: clamp(span.start)..clamp(span.end), text };
        Some(Fix { description, edits: edits.into_iter().map(edit).collect(), certainty: self.certainty })
    }
}

/// What one edit does, in words.
fn change(old: &str, new: &str) -> String {
    match (old.trim(), new.trim()) {
        ("", new) => format!("`{}` added", excerpt(new)),
        (old, "") => format!("`{}` removed", excerpt(old)),
        (old, new) => format!("`{}` → `{}`", excerpt(old), excerpt(new)),
    }
}
