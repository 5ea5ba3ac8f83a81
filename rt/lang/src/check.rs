//! Putting a text right where there is one reading of it, and finding all that is wrong with one.
//!
//! Both work in rounds on a draft: explain, put the fault right, explain again.

use std::ops::Range;

use crate::Signatures;
use crate::diagnostic::Diagnostic;
use crate::draft::Draft;
use crate::explain;
use crate::fix::Certainty;
use crate::messages::TOO_LARGE;
use crate::tree::{NodeId, Tree};

/// The most fixes that are made to a text.
const MAX_FIXES: usize = 64;

/// The most bytes that are read in all rounds together; each round reads the whole text.
const MAX_READ: usize = 1 << 20;

/// How many rounds a text may take.
fn rounds(source: &str) -> usize {
    (MAX_READ / source.len().max(1)).clamp(1, MAX_FIXES)
}

/// What became of a text.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The text with the fixes made. It has as many lines as before.
    pub source: String,
    /// What was wrong and is put right, in the order in which it was found, at its places in the author's text.
    pub applied: Vec<Diagnostic>,
    /// What is wrong with `source` still, at its place in the author's text; `None` where it is a program.
    pub rest: Option<Box<Diagnostic>>,
}

/// Puts a text right as far as that is certain: makes [safe](Certainty::Safe) fixes until there is none to make.
///
/// A text that is a program already stays as it is, byte for byte. Bounded by 64 fixes, and by time linear in the
/// text's length.
///
/// ```
/// # use wattle_lang::{Names, Param, Signature, Signatures, Ty};
/// # let host = Signatures::new([Signature {
/// #     module: "dbg", name: "log", params: &[Param { name: "ptr", ty: Ty::Str, names: Names::Nothing }], results: &[], errors: &[], touches: &[],
/// # }]);
/// let mended = wattle_lang::mend("(call $dbg.lgo “hello”)", &host);
/// assert_eq!(mended.source, "(call $dbg.log \"hello\")");
/// let fixes: Vec<&str> = mended.applied.iter().flat_map(|fault| &fault.fix).map(|fix| fix.description.as_str()).collect();
/// assert_eq!(fixes, ["`“hello”` → `\"hello\"`", "`$dbg.lgo` → `$dbg.log`"]);
/// assert!(mended.rest.is_none());
/// ```
#[must_use]
pub fn fix(source: &str, host: &Signatures) -> Fixed {
    let mut draft = Draft::new(source);
    let mut applied: Vec<Diagnostic> = Vec::new();
    let mut seen = vec![source.to_owned()];
    loop {
        let Some(found) = explain(draft.text(), host) else {
            return Fixed { source: draft.into_text(), applied, rest: None };
        };
        let fix = found.fix.clone().filter(|fix| fix.certainty == Certainty::Safe && applied.len() < rounds(source));
        let told = draft.in_source(*found);
        // A fix that leaves its fault where it was has put nothing right, and would be made for ever.
        let stands = applied.iter().any(|before| (&before.span, &before.message) == (&told.span, &told.message));
        let Some(fix) = fix.filter(|_| !stands) else {
            return Fixed { source: draft.into_text(), applied, rest: Some(Box::new(told)) };
        };
        draft.apply(&fix.edits);
        // Fixes that undo one another are none of them certain.
        if seen.iter().any(|text| text == draft.text()) {
            return Fixed { source: source.to_owned(), applied: Vec::new(), rest: explain(source, host) };
        }
        seen.push(draft.text().to_owned());
        applied.push(told.with_fix(Some(fix)));
    }
}

/// All that is wrong with a text, as far as it can be told without the faults before put right, at most `limit`
/// findings. Where one thing is wrong, that is what [`explain`] says.
#[must_use]
pub fn check(source: &str, host: &Signatures, limit: usize) -> Vec<Diagnostic> {
    let mut draft = Draft::new(source);
    let mut found: Vec<Diagnostic> = Vec::new();
    // Statements that are cut out, and the author's text of each: faults there or of names from there are echoes.
    let mut cut: Vec<(Range<usize>, String)> = Vec::new();
    for _ in 0..rounds(source).min(limit.saturating_mul(2)) {
        let Some(fault) = explain(draft.text(), host).filter(|_| found.len() < limit) else { break };
        let place = fault.span.start as usize..fault.span.end as usize;
        let told = draft.in_source((*fault).clone());
        let at = told.span.start as usize..told.span.end as usize;
        let echo = found.iter().any(|before| before.span == told.span)
            || cut.iter().any(|(span, text)| {
                let name = source.get(at.clone()).filter(|name| name.starts_with('$'));
                span.start < at.end && at.start < span.end || name.is_some_and(|name| text.contains(name))
            });
        let fix = fault.fix.filter(|fix| !echo && fix.certainty == Certainty::Safe);
        let is_too_large = told.code == TOO_LARGE;
        if !echo {
            found.push(told);
        }
        // A text that is too large still is so without one of its statements.
        if is_too_large {
            break;
        }
        match fix {
            Some(fix) => draft.apply(&fix.edits),
            None => {
                let Some(statement) = around(draft.text(), &place) else { break };
                let origin = draft.origin(&statement);
                cut.push((origin.clone(), source.get(origin).unwrap_or("").to_owned()));
                draft.replace(statement, "(unreachable)");
            }
        }
    }
    found.sort_by_key(|fault| fault.span.start);
    found
}

/// The innermost list around a place that may be cut out: what it leaves on the stack is unknown then.
fn around(text: &str, place: &Range<usize>) -> Option<Range<usize>> {
    let tree = Tree::read(text).ok()?;
    let mut nodes = tree.top();
    let mut found = None;
    while let Some(node) = nodes.next_deep(&tree) {
        let span = tree.span(node);
        let holds = span.start <= place.start && place.end.max(place.start + 1) <= span.end;
        if holds && is_statement(&tree, node) {
            found = Some(span);
        }
    }
    found.filter(|span| text.get(span.clone()) != Some("(unreachable)"))
}

/// Whether a node is an instruction or a form, not a part of one.
fn is_statement(tree: &Tree<'_>, node: NodeId) -> bool {
    let part = ["module", "func", "then", "else", "param", "result", "local", "type", "export", "import"];
    tree.head(node).is_some_and(|head| !part.contains(&head))
}
