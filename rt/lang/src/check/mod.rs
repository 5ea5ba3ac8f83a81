//! Auto-fixing of a program, and the search for all of its faults.
//!
//! Both work in rounds on a draft: they find the first fault, fix it, and find the next one. If a
//! fault has no safe fix, auto-fixing stops, but the search removes the faulty statement and
//! continues.

mod draft;
pub(crate) mod ending;
pub(crate) mod locate;
pub(crate) mod reason;
pub(crate) mod render;
mod verify;
pub(crate) mod walk;

use std::ops::Range;

use crate::check::draft::Draft;
use crate::diagnose::diagnostic::{Diagnostic, widen};
use crate::diagnose::fix::Certainty;
use crate::diagnose::wording::TOO_LARGE;
use crate::syntax::tree::{NodeId, Tree};
use crate::{Signatures, explain};

/// Maximum number of fixes applied to a program.
const MAX_FIXES: usize = 64;

/// Maximum total number of bytes read in all rounds. Each round reads the whole program.
const MAX_READ: usize = 1 << 20;

/// Returns the maximum number of rounds for a program of this length.
fn max_rounds(source: &str) -> usize {
    (MAX_READ / source.len().max(1)).clamp(1, MAX_FIXES)
}

/// A program after auto-fixing.
#[derive(Clone, Debug)]
pub struct FixResult {
    /// The source with the fixes applied. It has as many lines as the original.
    pub source: String,
    /// The fixed faults, in the order in which they were found. Their positions refer to the
    /// original source.
    pub applied: Vec<Diagnostic>,
    /// The first fault remaining in `source`, at its position in the original source. `None` if
    /// `source` is a valid program.
    pub rest: Option<Box<Diagnostic>>,
}

/// Applies [safe](Certainty::Safe) fixes to a program until there are no more to apply.
///
/// A valid program is returned unchanged, byte for byte. At most 64 fixes are applied, in time
/// linear in the length of the source.
///
/// ```
/// # use wattle_lang::{Names, Param, Signature, Signatures, Ty};
/// # let host = Signatures::new([Signature {
/// #     module: "dbg",
/// #     name: "log",
/// #     params: &[Param { name: "ptr", ty: Ty::Str, names: Names::Nothing }],
/// #     results: &[],
/// #     errors: &[],
/// #     touches: &[],
/// # }]);
/// let fixed = wattle_lang::fix("(call $dbg.lgo “hello”)", &host);
/// assert_eq!(fixed.source, "(call $dbg.log \"hello\")");
/// let fixes = fixed.applied.iter().flat_map(|fault| &fault.fix);
/// let fixes: Vec<&str> = fixes.map(|fix| fix.description.as_str()).collect();
/// assert_eq!(fixes, ["`“hello”` → `\"hello\"`", "`$dbg.lgo` → `$dbg.log`"]);
/// assert!(fixed.rest.is_none());
/// ```
#[must_use]
pub fn fix(source: &str, host: &Signatures) -> FixResult {
    let mut draft = Draft::new(source);
    let mut applied: Vec<Diagnostic> = Vec::new();
    let mut seen = vec![source.to_owned()];
    loop {
        let Some(found) = explain(draft.text(), host) else {
            return FixResult { source: draft.into_text(), applied, rest: None };
        };
        let fix = found
            .fix
            .clone()
            .filter(|fix| fix.certainty == Certainty::Safe && applied.len() < max_rounds(source));
        let diagnostic = draft.in_source(*found);
        // If the same fault is found again at the same position, its fix did not help and would be
        // applied forever.
        let repeated = applied.iter().any(|before| {
            (&before.span, &before.message) == (&diagnostic.span, &diagnostic.message)
        });
        let Some(fix) = fix.filter(|_| !repeated) else {
            return FixResult {
                source: draft.into_text(),
                applied,
                rest: Some(Box::new(diagnostic)),
            };
        };
        draft.apply(&fix.edits);
        // If fixes undo each other, none of them is safe.
        if seen.iter().any(|text| text == draft.text()) {
            return FixResult {
                source: source.to_owned(),
                applied: Vec::new(),
                rest: explain(source, host),
            };
        }
        seen.push(draft.text().to_owned());
        applied.push(diagnostic.with_fix(Some(fix)));
    }
}

/// Finds the faults in a program, except those that are probably consequences of earlier ones.
/// Returns at most `limit` diagnostics.
///
/// If the program has a single fault, the result is the diagnostic that [`explain`] returns.
#[must_use]
pub fn check(source: &str, host: &Signatures, limit: usize) -> Vec<Diagnostic> {
    let mut draft = Draft::new(source);
    let mut found: Vec<Diagnostic> = Vec::new();
    // Statements that were removed, each with its original text. Faults inside them, and faults
    // about names that they declare, are consequences of the first fault.
    let mut cut: Vec<(Range<usize>, String)> = Vec::new();
    for _ in 0..max_rounds(source).min(limit.saturating_mul(2)) {
        let Some(fault) = explain(draft.text(), host).filter(|_| found.len() < limit) else {
            break;
        };
        let range = widen(&fault.span);
        let diagnostic = draft.in_source((*fault).clone());
        let at = widen(&diagnostic.span);
        let is_consequence = found.iter().any(|before| before.span == diagnostic.span)
            || cut.iter().any(|(span, text)| {
                let name = source.get(at.clone()).filter(|name| name.starts_with('$'));
                span.start < at.end && at.start < span.end
                    || name.is_some_and(|name| text.contains(name))
            });
        let fix = fault.fix.filter(|fix| !is_consequence && fix.certainty == Certainty::Safe);
        let is_too_large = diagnostic.code == TOO_LARGE;
        if !is_consequence {
            found.push(diagnostic);
        }
        // Removing one statement does not make a program small enough.
        if is_too_large {
            break;
        }
        match fix {
            Some(fix) => draft.apply(&fix.edits),
            None => {
                let Some(statement) = enclosing_statement(draft.text(), &range) else { break };
                let origin = draft.origin(&statement);
                cut.push((origin.clone(), source.get(origin).unwrap_or("").to_owned()));
                draft.replace(statement, "(unreachable)");
            }
        }
    }
    found.sort_by_key(|fault| fault.span.start);
    found
}

/// Returns the range of the innermost list that contains a given range and can be replaced with
/// `(unreachable)`, which is valid regardless of the values expected on the stack. Returns `None`
/// if there is no such list, or if that list already is `(unreachable)`.
fn enclosing_statement(text: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let tree = Tree::read(text).ok()?;
    let mut nodes = tree.top();
    let mut found = None;
    while let Some(node) = nodes.next_deep(&tree) {
        let span = tree.span(node);
        let contains = span.start <= range.start && range.end.max(range.start + 1) <= span.end;
        if contains && is_statement(&tree, node) {
            found = Some(span);
        }
    }
    found.filter(|span| text.get(span.clone()) != Some("(unreachable)"))
}

/// Returns true if a node is an instruction or a form, rather than a part of one.
fn is_statement(tree: &Tree<'_>, node: NodeId) -> bool {
    let part =
        ["module", "func", "then", "else", "param", "result", "local", "type", "export", "import"];
    tree.head(node).is_some_and(|head| !part.contains(&head))
}
