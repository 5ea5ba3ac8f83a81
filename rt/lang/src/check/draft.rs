//! A program under repair, with a mapping from positions in the current source to the original
//! source.

use std::ops::Range;

use crate::diagnose::diagnostic::{Diagnostic, narrow, widen};
use crate::diagnose::fix::{Edit, Fix};

/// A source and the edits made to it.
pub(crate) struct Draft<'s> {
    source: &'s str,
    text: String,
    /// The replaced ranges, in source order. They overlap neither in the original nor in the
    /// current source.
    changes: Vec<Replacement>,
}

/// A replaced range.
struct Replacement {
    /// The range in the original source.
    source: Range<usize>,
    /// The range in the current source.
    text: Range<usize>,
}

impl<'s> Draft<'s> {
    pub(crate) fn new(source: &'s str) -> Draft<'s> {
        Draft { source, text: source.to_owned(), changes: Vec::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Applies edits to the current source.
    pub(crate) fn apply(&mut self, edits: &[Edit]) {
        for edit in edits.iter().rev() {
            self.replace(widen(&edit.span), &edit.text);
        }
    }

    /// Replaces a range of the current source.
    pub(crate) fn replace(&mut self, mut at: Range<usize>, with: &str) {
        if self.text.get(at.clone()).is_none() {
            return;
        }
        self.text.replace_range(at.clone(), with);
        let old = at.len();
        let mut new = at.start..at.start + with.len();
        let mut source = None;
        // A change is merged with the changes that it overlaps or touches.
        let touched =
            |change: &Replacement| change.text.start <= at.end && at.start <= change.text.end;
        let first = self.changes.iter().position(touched).unwrap_or(self.changes.len());
        let count = self.changes.iter().skip(first).take_while(|change| touched(change)).count();
        let merged: Vec<Replacement> =
            self.changes.drain(first..(first + count).min(self.changes.len())).collect();
        if let (Some(head), Some(tail)) = (merged.first(), merged.last()) {
            let before = head.text.start.min(at.start);
            let after = tail.text.end.max(at.end);
            let begin = head.source.start - (head.text.start - before);
            let end = tail.source.end + (after - tail.text.end);
            source = Some(begin..end);
            at = before..after;
            new = before..after + with.len() - old;
        }
        let index = self
            .changes
            .iter()
            .position(|change| change.text.start >= at.end)
            .unwrap_or(self.changes.len());
        for change in self.changes.iter_mut().skip(index) {
            change.text = change.text.start + with.len() - old..change.text.end + with.len() - old;
        }
        let source =
            source.unwrap_or_else(|| self.before(at.start, index)..self.before(at.end, index));
        self.changes.insert(index, Replacement { source, text: new });
    }

    /// Maps a position in the current source to the original source. `count` must be the number of
    /// changes that precede the position.
    fn before(&self, at: usize, count: usize) -> usize {
        match count.checked_sub(1).and_then(|last| self.changes.get(last)) {
            Some(change) => change.source.end + (at - change.text.end),
            None => at,
        }
    }

    /// Maps a range of the current source to the original source. If the range begins or ends
    /// inside a replaced range, the result includes that whole replaced range.
    pub(crate) fn origin(&self, at: &Range<usize>) -> Range<usize> {
        let count = |offset: usize| {
            self.changes.iter().take_while(|change| change.text.end <= offset).count()
        };
        let begin =
            match self.changes.get(count(at.start)).filter(|change| change.text.start < at.start) {
                Some(inside) => inside.source.start,
                None => self.before(at.start, count(at.start)),
            };
        let end = match self.changes.get(count(at.end)).filter(|change| change.text.start < at.end)
        {
            Some(inside) => inside.source.end,
            None => self.before(at.end, count(at.end)),
        };
        begin..end.max(begin)
    }

    /// Returns true if a range of the current source neither overlaps nor adjoins a replaced range.
    fn untouched(&self, at: &Range<usize>) -> bool {
        !self
            .changes
            .iter()
            .any(|change| change.text.start <= at.end && at.start <= change.text.end)
    }

    /// Maps a diagnostic about the current source to the original source. Drops the diagnostic's
    /// fix if one of the fix's edits overlaps or adjoins a replaced range.
    pub(crate) fn in_source(&self, found: Diagnostic) -> Diagnostic {
        let fix = found
            .fix
            .filter(|fix| fix.edits.iter().all(|edit| self.untouched(&widen(&edit.span))))
            .map(|fix| {
                let moved =
                    |edit: Edit| Edit { span: narrow(&self.origin(&widen(&edit.span))), ..edit };
                Fix { edits: fix.edits.into_iter().map(moved).collect(), ..fix }
            });
        let span = narrow(&self.origin(&widen(&found.span)));
        Diagnostic::new(self.source, found.severity, found.code, span, found.message, found.hint)
            .with_fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use super::Draft;

    #[test]
    fn positions_map_to_the_original_text() {
        let mut draft = Draft::new("abc def ghi");
        draft.replace(4..7, "D");
        assert_eq!(draft.text(), "abc D ghi");
        assert_eq!(
            (draft.origin(&(0..3)), draft.origin(&(4..5)), draft.origin(&(6..9))),
            (0..3, 4..7, 8..11)
        );
        draft.replace(0..0, ">>");
        assert_eq!((draft.text(), draft.origin(&(2..5))), (">>abc D ghi", 0..3));
        assert_eq!(draft.origin(&(8..11)), 8..11);
        draft.replace(6..7, "wider");
        assert_eq!((draft.text(), draft.origin(&(6..11))), (">>abc wider ghi", 4..7));
        draft.replace(8..15, "");
        assert_eq!(
            (draft.text(), draft.origin(&(0..2)), draft.origin(&(6..8))),
            (">>abc wi", 0..0, 4..11)
        );
        draft.replace(2..6, "x");
        assert_eq!((draft.text(), draft.origin(&(0..5))), (">>xwi", 0..11));
    }
}
