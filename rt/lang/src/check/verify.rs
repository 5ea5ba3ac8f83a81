//! The final check of a fix. A fix is offered only if it improves the program.

use std::ops::Range;

use crate::check::draft::Draft;
use crate::check::{max_rounds, reason};
use crate::diagnose::diagnostic::{Diagnostic, Severity, widen};
use crate::diagnose::fix::{Certainty, Edit, Edits, Fix, ProposedFix};
use crate::diagnose::truncate::truncate;
use crate::diagnose::wording::{self, Fault};
use crate::lower::forms;
use crate::syntax::tree::{NodeId, NodeKind, Tree};
use crate::types::instruction;
use crate::{Position, Signatures, habits};

/// Maximum number of consecutive fixes at one location.
const MAX_CHAIN: usize = 8;

/// Maximum number of alternative readings to try. A reading is a change that reinterprets a form
/// around the fault.
const MAX_READINGS: usize = 24;

/// Maximum length, in characters, of the code that a hint shows.
const MAX_SHOWN: usize = 160;

/// Maximum length, in bytes, of a source that is parsed again to search for other readings.
const MAX_READ_AGAIN: usize = 16 << 10;

/// Checks the fix of a diagnostic. Keeps the fix if it is safe and the fixed source is valid at the
/// location of the fix. Otherwise, tries the readings of the enclosing forms, which are changes
/// that reinterpret one of these forms. If exactly one reading is valid, it replaces the fix. If
/// none or several are valid, the fix is kept only if it makes the source valid at its location.
///
/// If a fix requires additional fixes, those are also applied before the check. Faults elsewhere
/// are ignored. If the source is in another language and no fix leads to a valid program, returns
/// a diagnostic that names the language.
pub(crate) fn verified(found: Diagnostic, source: &str, host: &Signatures) -> Diagnostic {
    let own = found.fix.as_ref().and_then(|fix| outcome(&found, fix, source, host, true));
    let is_certain = found.fix.as_ref().is_some_and(|fix| fix.certainty == Certainty::Safe);
    if source.len() > MAX_READ_AGAIN {
        return if own.is_some() { found } else { found.with_fix(None) };
    }
    let stale = found.fix.as_ref().is_some_and(|fix| shows(&found, &fix.apply(source)));
    let better = match own {
        Some(own) if is_certain => Some(with_final_hint(found.clone(), &own, source)),
        own => {
            let tree = Tree::read(source).ok();
            let bare = found.clone().with_fix(None);
            let read = |tree: &Tree<'_>| other_reading(&bare, tree, host, true);
            tree.as_ref()
                .and_then(read)
                .or_else(|| own.map(|_| found.clone()))
                .or_else(|| foreign_around(&found, tree.as_ref()?, host))
        }
    };
    if let Some(pasted) = habits::pasted::language(source)
        && better.as_ref().is_none_or(|better| !leads_to_valid(better, source, host))
    {
        let line = source.get(pasted.line.clone()).unwrap_or("");
        let message = wording::other_language(pasted.language, line);
        return Fault::new(pasted.line, message).into_diagnostic(source, Severity::Error);
    }
    better.unwrap_or_else(|| {
        if stale { Diagnostic { hint: None, ..found.with_fix(None) } } else { found.with_fix(None) }
    })
}

/// Sets the hint to the form that results from all fixes if the diagnostic's fix requires
/// additional ones. Keeps a hint that gives other advice.
fn with_final_hint(found: Diagnostic, own: &Outcome, source: &str) -> Diagnostic {
    let edits = found.fix.as_ref().map_or(&[][..], |fix| fix.edits.as_slice());
    let is_final = edits.iter().all(|edit| own.text.contains(&edit.text));
    let replaces = found
        .hint
        .as_ref()
        .is_none_or(|hint| hint.starts_with("write `") || hint.starts_with("nearest") && !is_final);
    if own.rounds > 0 && replaces {
        Diagnostic { hint: Some(format!("write `{}`", own.form(source))), ..found }
    } else {
        found
    }
}

/// Returns true if a diagnostic's fix and the subsequent fixes make a program valid.
fn leads_to_valid(found: &Diagnostic, source: &str, host: &Signatures) -> bool {
    let mut draft = Draft::new(source);
    let mut next = found.clone();
    for _ in 0..MAX_CHAIN {
        let safe = next.fix.take().filter(|fix| fix.certainty == Certainty::Safe).or_else(|| {
            let tree = Tree::read(draft.text()).ok()?;
            other_reading(&next, &tree, host, false)?.fix
        });
        let Some(fix) = safe else { return false };
        draft.apply(&fix.edits);
        let Some(fault) = crate::fault(draft.text(), host) else { return true };
        next = reason::unverified(*fault, draft.text(), host);
    }
    false
}

/// Returns true if the hint of a diagnostic quotes a part of the fixed source.
fn shows(found: &Diagnostic, fixed: &str) -> bool {
    let quoted = found.hint.as_ref().and_then(|hint| {
        hint.strip_prefix("write `")?.strip_suffix('`').map(|code| code.trim_end_matches('…'))
    });
    let plain = fixed.split_whitespace().collect::<Vec<_>>().join(" ");
    quoted.is_some_and(|code| plain.contains(code))
}

/// Returns the diagnostic with a fix that reinterprets an enclosing form, if exactly one such fix
/// is valid.
///
/// If `deep` is true, the additional fixes that this fix requires may themselves reinterpret
/// enclosing forms.
fn other_reading(
    found: &Diagnostic,
    tree: &Tree<'_>,
    host: &Signatures,
    deep: bool,
) -> Option<Diagnostic> {
    let source = tree.source;
    let span = widen(&found.span);
    let mut tried = 0;
    let safe = |edits: Edits| ProposedFix { change: edits.into(), certainty: Certainty::Safe };
    let change = habits::loop_of_c(source, span.start);
    let fix = change.and_then(|change| safe(change).resolve(source, &span));
    if let Some(fix) = fix
        && let Some(best) = outcome(found, &fix, source, host, deep)
    {
        let hint = Some(format!("write `{}`", best.form(source)));
        return Some(Diagnostic { hint, ..found.clone() }.with_fix(Some(fix)));
    }
    let is_value = |name: &str| forms::form(name).map(|form| form.yields == forms::Yields::Value);
    for readings in habits::readings(tree, &span, host, is_value) {
        let form = tree.span(readings.form);
        let proposed = readings.changes.into_iter().take(MAX_READINGS - tried);
        let fixes = proposed.filter_map(|change| {
            tried += 1;
            safe(change).resolve(source, &form)
        });
        let outcomes =
            fixes.filter_map(|fix| Some((outcome(found, &fix, source, host, deep)?, fix)));
        let mut valid: Vec<(Outcome, Fix)> = outcomes.collect();
        valid.sort_by_key(|(outcome, _)| outcome.rounds);
        let mut valid = valid.into_iter();
        let Some((best, fix)) = valid.next() else { continue };
        if valid.all(|(other, _)| other.text == best.text) {
            let hint = moved(&fix, source).or_else(|| {
                let is_import = fix
                    .edits
                    .iter()
                    .all(|edit| matches!(edit.text.as_str(), "(; " | " ;)" | ";; "));
                is_import.then(|| habits::hint("import").map(str::to_owned))?
            });
            let hint = hint.unwrap_or_else(|| format!("write `{}`", best.form(source)));
            let hint = Some(hint);
            return Some(Diagnostic { hint, ..found.clone() }.with_fix(Some(fix)));
        }
        if tried >= MAX_READINGS {
            break;
        }
    }
    None
}

/// Returns the hint for a fix that moves a closing parenthesis, or `None` for any other fix.
fn moved(fix: &Fix, source: &str) -> Option<String> {
    let [first, second] = fix.edits.as_slice() else { return None };
    let removes = |edit: &Edit| {
        let cut = source.get(widen(&edit.span));
        cut == Some(")") && edit.text.is_empty()
    };
    let inserts = |edit: &Edit| edit.span.is_empty() && edit.text == ")";
    let line = |edit: &Edit| Position::of(source, edit.span.start as usize).line;
    let (from, to, when) = match (removes(first), removes(second)) {
        (true, false) if inserts(second) => (line(first), line(second), "early"),
        (false, true) if inserts(first) => (line(second), line(first), "late"),
        _ => return None,
    };
    Some(format!(
        "a form is closed too {when}: move the `)` of line {from} to the end of line {to}"
    ))
}

/// Returns a diagnostic about the innermost enclosing form that starts with a name from another
/// language, with the hint for that name. Returns `None` if there is no such form.
fn foreign_around(found: &Diagnostic, tree: &Tree<'_>, host: &Signatures) -> Option<Diagnostic> {
    let at = found.span.start as usize;
    let lists = tree.all().filter(|node| {
        let span = tree.span(*node);
        tree.is_list(*node) && span.start <= at && at < span.end
    });
    let (head, hint) = lists
        .filter_map(|list| {
            let head = tree.children(list).next(tree)?;
            let is_known = |name: &str| host.get(name).is_some() || instruction::op(name).is_some();
            let name = tree.atom(head).filter(|name| !is_known(name))?;
            // `(loop [$i 0] …)` is not a WAT loop.
            let next = tree.after(head).next(tree);
            let binds = next.is_some_and(|next| tree.text(next).starts_with('['));
            if matches!(name, "import" | "loop") && !binds {
                return None;
            }
            Some((head, habits::hint(name)?))
        })
        .next_back()?;
    let message = wording::foreign_head(tree.text(head)).hint(hint);
    Some(Fault::at(tree, head, message).into_diagnostic(tree.source, Severity::Error))
}

/// The program text after a fix and the additional fixes that the first one required. No fault
/// remains at the location of the first fix.
struct Outcome {
    text: String,
    /// The number of fixes applied after the first.
    rounds: usize,
}

impl Outcome {
    /// Returns the code of the innermost form that contains all differences from `source`, on one
    /// line and truncated.
    fn form(&self, source: &str) -> String {
        let text = self.text.as_str();
        let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let start = same(source, text);
        let rest = |text: &str| text.len().saturating_sub(start);
        let tail = source.bytes().rev().zip(text.bytes().rev());
        let tail = tail.take_while(|(a, b)| a == b).count().min(rest(source)).min(rest(text));
        let changed = start..text.len() - tail;
        let tree = Tree::read(text).ok();
        // An insertion or removal at the end of a list changes the list around it.
        let margin = usize::from(changed.is_empty());
        let around = changed.start.saturating_sub(margin)..changed.end + margin;
        let form = tree.and_then(|tree| Some(tree.span(tree.list_around(&around)?)));
        let code = text.get(form.unwrap_or(changed)).unwrap_or("");
        let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
        truncate(&code, MAX_SHOWN).into_owned()
    }
}

/// Applies the fix for a fault, and any additional fixes that it requires. Returns `None` if a
/// fault remains at the location of the fix, or if the same fault is found again.
fn outcome(
    found: &Diagnostic,
    fix: &Fix,
    source: &str,
    host: &Signatures,
    deep: bool,
) -> Option<Outcome> {
    let fixed = fix.apply(source);
    let place = place(&fixed, &fix.edits);
    let is_rename = renames_head(fix, &fixed);
    let mut draft = Draft::new(&fixed);
    let max = max_rounds(source).min(MAX_CHAIN);
    for rounds in 0..max {
        let done = |draft: &Draft<'_>| Some(Outcome { text: draft.text().to_owned(), rounds });
        let Some(fault) = crate::fault(draft.text(), host) else { return done(&draft) };
        let next = reason::unverified(*fault, draft.text(), host);
        let at = draft.origin(&widen(&next.span));
        if next.message == found.message && at.start == found.span.start as usize {
            return None;
        }
        if is_rename && is_inside_operand(&fixed, &place, &at) {
            return done(&draft);
        }
        // A fix that moves a parenthesis must make the whole program valid.
        if (at.end < place.start || place.end < at.start) && moved(fix, source).is_none() {
            return done(&draft);
        }
        let is_safe = |fix: &Fix| fix.certainty == Certainty::Safe;
        let safe = next.fix.clone().filter(is_safe).or_else(|| {
            let tree = Tree::read(draft.text()).ok();
            let tree = tree.filter(|_| deep && draft.text().len() <= MAX_READ_AGAIN)?;
            other_reading(&next, &tree, host, false)?.fix
        })?;
        draft.apply(&safe.edits);
    }
    None
}

/// Returns true if a fix only replaces the first word of a list.
fn renames_head(fix: &Fix, fixed: &str) -> bool {
    let [edit] = fix.edits.as_slice() else { return false };
    let start = edit.span.start as usize;
    let is_head = fixed.get(..start).is_some_and(|before| before.ends_with('('));
    let is_word = !edit.text.contains([' ', '(', ')', '\n']) && !edit.text.is_empty();
    is_head && is_word && !edit.span.is_empty()
}

/// Returns true if a range is inside an operand of the list at `place`, but is not the whole
/// operand.
fn is_inside_operand(text: &str, place: &Range<usize>, at: &Range<usize>) -> bool {
    let Ok(tree) = Tree::read(text) else { return false };
    tree.list_around(at).is_some_and(|list| {
        let span = tree.span(list);
        place.start < span.start && span.end < place.end && *at != span
    })
}

/// Returns the range of the fixed source that the edits affect: the replaced operand, or else the
/// innermost list that contains all edits.
fn place(fixed: &str, edits: &[Edit]) -> Range<usize> {
    let mut start = usize::MAX;
    let mut end = 0;
    let mut shift = 0_isize;
    for edit in edits {
        let from = (edit.span.start as usize).saturating_add_signed(shift);
        start = start.min(from);
        end = end.max(from + edit.text.len());
        let removed = edit.span.end.saturating_sub(edit.span.start) as usize;
        shift += edit.text.len().cast_signed() - removed.cast_signed();
    }
    let edited = start.min(end)..end;
    let Ok(tree) = Tree::read(fixed) else { return edited };
    if let [_] = edits {
        let is_operand = |node: NodeId| {
            tree.span(node) == edited
                && tree.node(node).kind == NodeKind::Atom
                && tree.parent(node).is_some_and(|list| list.0 + 1 != node.0)
        };
        // Replacing one operand with another affects nothing else.
        if tree.all().any(is_operand) {
            return edited;
        }
    }
    tree.list_around(&edited).map_or(edited, |list| tree.span(list))
}
