//! A text under repair, which remembers where each of its places stands in the author's text.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, clamp};
use crate::fix::{Edit, Fix};

/// A text with edits made to it.
pub(super) struct Draft<'s> {
    source: &'s str,
    text: String,
    /// What was replaced, in the order of the text; neither the old places nor the new ones overlap.
    changes: Vec<Replaced>,
}

/// One replaced piece.
struct Replaced {
    /// Its place in the author's text.
    source: Range<usize>,
    /// The place of what stands there now.
    text: Range<usize>,
}

impl<'s> Draft<'s> {
    pub(super) fn new(source: &'s str) -> Draft<'s> {
        Draft { source, text: source.to_owned(), changes: Vec::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Makes edits to the text as it is now.
    pub(super) fn apply(&mut self, edits: &[Edit]) {
        for edit in edits.iter().rev() {
            self.replace(edit.span.start as usize..edit.span.end as usize, &edit.text);
        }
    }

    /// Replaces a piece of the text as it is now.
    pub(super) fn replace(&mut self, mut at: Range<usize>, with: &str) {
        if self.text.get(at.clone()).is_none() {
            return;
        }
        self.text.replace_range(at.clone(), with);
        let (old, mut new) = (at.len(), at.start..at.start + with.len());
        let mut source = None;
        // Changes that the new one touches become part of it.
        let touched = |change: &Replaced| change.text.start <= at.end && at.start <= change.text.end;
        let first = self.changes.iter().position(touched).unwrap_or(self.changes.len());
        let count = self.changes.iter().skip(first).take_while(|change| touched(change)).count();
        let merged: Vec<Replaced> = self.changes.drain(first..(first + count).min(self.changes.len())).collect();
        if let (Some(head), Some(tail)) = (merged.first(), merged.last()) {
            let before = head.text.start.min(at.start);
            let after = tail.text.end.max(at.end);
            let begin = head.source.start - (head.text.start - before);
            let end = tail.source.end + (after - tail.text.end);
            source = Some(begin..end);
            at = before..after;
            new = before..after + with.len() - old;
        }
        let place = self.changes.iter().position(|change| change.text.start >= at.end).unwrap_or(self.changes.len());
        for change in self.changes.iter_mut().skip(place) {
            change.text = change.text.start + with.len() - old..change.text.end + with.len() - old;
        }
        let source = source.unwrap_or_else(|| self.before(at.start, place)..self.before(at.end, place));
        self.changes.insert(place, Replaced { source, text: new });
    }

    /// The author's place of a place that the first `count` changes stand before.
    fn before(&self, at: usize, count: usize) -> usize {
        match count.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some(change) => change.source.end + (at - change.text.end),
            None => at,
        }
    }

    /// The author's place of a place in the text as it is now; what was replaced is one place.
    pub(super) fn origin(&self, at: &Range<usize>) -> Range<usize> {
        let count = |offset: usize| self.changes.iter().take_while(|change| change.text.end <= offset).count();
        let begin = match self.changes.get(count(at.start)).filter(|change| change.text.start < at.start) {
            Some(inside) => inside.source.start,
            None => self.before(at.start, count(at.start)),
        };
        let end = match self.changes.get(count(at.end)).filter(|change| change.text.start < at.end) {
            Some(inside) => inside.source.end,
            None => self.before(at.end, count(at.end)),
        };
        begin..end.max(begin)
    }

    /// Whether a place in the text as it is now touches nothing that was replaced.
    fn untouched(&self, at: &Range<usize>) -> bool {
        !self.changes.iter().any(|change| change.text.start <= at.end && at.start <= change.text.end)
    }

    /// A finding about the text as it is now, at its place in the author's. Its fix stays where it can be made there.
    pub(super) fn in_source(&self, found: Diagnostic) -> Diagnostic {
        let place = |span: &Range<u32>| span.start as usize..span.end as usize;
        let fix = found.fix.filter(|fix| fix.edits.iter().all(|edit| self.untouched(&place(&edit.span)))).map(|fix| {
            let moved = |edit: Edit| {
                let span = self.origin(&place(&edit.span));
                Edit { span: clamp(span.start)..clamp(span.end), ..edit }
            };
            Fix { edits: fix.edits.into_iter().map(moved).collect(), ..fix }
        });
        let span = self.origin(&place(&found.span));
        let span = clamp(span.start)..clamp(span.end);
        Diagnostic::new(self.source, found.severity, found.code, span, found.message, found.hint).with_fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use super::Draft;

    #[test]
    fn places_lead_back_to_the_author() {
        let mut draft = Draft::new("abc def ghi");
        draft.replace(4..7, "D");
        assert_eq!(draft.text(), "abc D ghi");
        assert_eq!((draft.origin(&(0..3)), draft.origin(&(4..5)), draft.origin(&(6..9))), (0..3, 4..7, 8..11));
        draft.replace(0..0, ">>");
        assert_eq!((draft.text(), draft.origin(&(2..5))), (">>abc D ghi", 0..3));
        assert_eq!(draft.origin(&(8..11)), 8..11);
        draft.replace(6..7, "wider");
        assert_eq!((draft.text(), draft.origin(&(6..11))), (">>abc wider ghi", 4..7));
        draft.replace(8..15, "");
        assert_eq!((draft.text(), draft.origin(&(0..2)), draft.origin(&(6..8))), (">>abc wi", 0..0, 4..11));
        draft.replace(2..6, "x");
        assert_eq!((draft.text(), draft.origin(&(0..5))), (">>xwi", 0..11));
    }
}
