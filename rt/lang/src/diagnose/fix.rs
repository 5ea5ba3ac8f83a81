//! Fixes for a fault: edits to the source, and their certainty.

use std::ops::Range;

use serde::Serialize;

use crate::diagnose::diagnostic::narrow;
use crate::diagnose::truncate::excerpt;

/// The degree of certainty that a [`Fix`] produces the program that the author meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// The invalid source has only one possible interpretation, and the fix produces it. Such a fix
    /// may be applied without confirmation.
    Safe,
    /// The invalid source has several possible interpretations, and the fix produces one of them.
    /// The author must decide.
    Likely,
}

/// A replacement for a range of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The replaced range, in bytes of the source. Empty for an insertion.
    pub span: Range<u32>,
    /// The new text.
    pub text: String,
}

/// Edits that fix a fault. They never change the number of lines, so that line numbers in later
/// diagnostics stay valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// A description of the change, such as `` `$http.fetch` → `$http.get` ``.
    pub description: String,
    /// The edits, in source order. They do not overlap.
    pub edits: Vec<Edit>,
    /// The certainty that the fix is what the author meant.
    pub certainty: Certainty,
}

impl Fix {
    /// Returns the source with the edits applied.
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

/// Maximum number of edits to describe individually.
const MAX_DESCRIBED: usize = 6;

/// Maximum number of edits in a fix.
const MAX_EDITS: usize = 256;

/// A fix that is not yet resolved against the source.
#[derive(Clone, Debug)]
pub(crate) struct ProposedFix {
    pub(crate) change: Change,
    pub(crate) certainty: Certainty,
}

/// The change that a [`ProposedFix`] makes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A replacement for the range of the fault.
    Replace(String),
    /// Text to insert before and after the range of the fault.
    Wrap(String, String),
    /// Replacements for several ranges.
    Edits(Edits),
}

impl Change {
    /// Creates a change that replaces one range.
    pub(crate) fn edit(span: Range<usize>, text: impl Into<String>) -> Change {
        Change::Edits(Edits::one(span, text))
    }

    /// Creates a change that inserts text before and after the range of the fault.
    pub(crate) fn wrap(before: impl Into<String>, after: impl Into<String>) -> Change {
        Change::Wrap(before.into(), after.into())
    }
}

/// Replacements for ranges of the source, which must not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Creates a replacement for one range.
    pub(crate) fn one(span: Range<usize>, text: impl Into<String>) -> Edits {
        Edits::default().replace(span, text)
    }

    /// Adds a replacement for a range.
    pub(crate) fn add(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.0.push((span, text.into()));
    }

    /// Adds a replacement for a range, and returns all edits.
    pub(crate) fn replace(mut self, span: Range<usize>, text: impl Into<String>) -> Edits {
        self.add(span, text);
        self
    }

    /// Adds an insertion.
    pub(crate) fn insert(self, at: usize, text: impl Into<String>) -> Edits {
        self.replace(at..at, text)
    }

    /// Adds the removal of a range.
    pub(crate) fn remove(self, span: Range<usize>) -> Edits {
        self.replace(span, "")
    }

    /// Adds the insertion of text before and after a range.
    pub(crate) fn wrap(
        self,
        span: &Range<usize>,
        before: impl Into<String>,
        after: impl Into<String>,
    ) -> Edits {
        self.insert(span.start, before).insert(span.end, after)
    }

    /// Returns the edits, or `None` if there are none.
    pub(crate) fn nonempty(self) -> Option<Edits> {
        (!self.0.is_empty()).then_some(self)
    }

    /// Merges insertions at the same position, in the order in which they were added.
    pub(crate) fn merged(mut self) -> Edits {
        self.0.sort_by_key(|(span, _)| (span.start, span.end));
        self.0.dedup_by(|(span, text), (last, before)| {
            let same = span == last && span.start == span.end;
            if same {
                before.push_str(text);
            }
            same
        });
        self
    }
}

impl FromIterator<(Range<usize>, String)> for Edits {
    fn from_iter<I: IntoIterator<Item = (Range<usize>, String)>>(edits: I) -> Edits {
        Edits(edits.into_iter().collect())
    }
}

impl From<Edits> for Change {
    fn from(edits: Edits) -> Change {
        Change::Edits(edits)
    }
}

impl ProposedFix {
    /// Resolves the fix for a fault with this range. Returns `None` if the fix changes nothing,
    /// changes the number of lines, has too many edits, or has edits that overlap or are outside
    /// the source.
    pub(crate) fn resolve(self, source: &str, span: &Range<usize>) -> Option<Fix> {
        let cut = |span: &Range<usize>| source.get(span.clone()).unwrap_or("");
        let mut description = None;
        let mut edits = match self.change {
            Change::Replace(text) => vec![(span.clone(), text)],
            Change::Wrap(before, after) => {
                let inner = excerpt(cut(span));
                description = Some(format!("`{inner}` → `{before}{inner}{after}`"));
                vec![(span.start..span.start, before), (span.end..span.end, after)]
            }
            Change::Edits(Edits(edits)) => edits,
        };
        edits.retain(|(span, text)| cut(span) != text);
        if edits.len() > MAX_EDITS {
            return None;
        }
        edits.sort_by_key(|(span, _)| (span.start, span.end));
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let apart =
            edits.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a.end <= b.start));
        let inside = edits.iter().all(|(span, _)| source.get(span.clone()).is_some());
        let same_lines = edits.iter().all(|(span, text)| lines(cut(span)) == lines(text));
        if edits.is_empty() || !apart || !inside || !same_lines {
            return None;
        }
        let each = || {
            edits.iter().map(|(span, text)| change(cut(span), text)).collect::<Vec<_>>().join(", ")
        };
        let hull = || {
            let (first, last) = (edits.first()?, edits.last()?);
            let old = source.get(first.0.start..last.0.end)?;
            let mut new = String::new();
            let mut at = first.0.start;
            for (span, text) in &edits {
                new.push_str(source.get(at..span.start)?);
                new.push_str(text);
                at = span.end;
            }
            Some(change(old, &new))
        };
        let whole = if edits.len() > MAX_DESCRIBED { hull() } else { None };
        let description = description.or(whole).unwrap_or_else(each);
        let edit = |(span, text): (Range<usize>, String)| Edit { span: narrow(&span), text };
        Some(Fix {
            description,
            edits: edits.into_iter().map(edit).collect(),
            certainty: self.certainty,
        })
    }
}

/// Describes an edit, as in `` `old` → `new` ``.
fn change(old: &str, new: &str) -> String {
    match (old.trim(), new.trim()) {
        ("", new) => format!("`{}` added", excerpt(new)),
        (old, "") => format!("`{}` removed", excerpt(old)),
        (old, new) => format!("`{}` → `{}`", excerpt(old), excerpt(new)),
    }
}
