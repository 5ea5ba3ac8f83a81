//! The forms that the language adds to WAT.
//!
//! A form consists of an entry in [`FORMS`] and a function that lowers it.

mod arithmetic;
mod binding;
mod bits;
pub(crate) mod call;
mod collection;
mod compare;
mod control;
mod convert;
mod counting;
mod each;
mod failure;
mod numbers;
mod program;
mod table;
mod text;

pub(crate) use self::table::FORMS;
use std::sync::LazyLock;

use super::flow::{Context, Lowered};
use super::{LowerResult, Lowering};
use crate::NameMap;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::instruction::{self, Instruction};

/// A form of the language, with its documentation and the function that lowers it.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    /// The usage, such as `(let $x V)`.
    pub(crate) usage: &'static str,
    /// A one-sentence description without a full stop. Empty for a form that is accepted but not
    /// documented.
    pub(crate) about: &'static str,
    /// The kind of value that the form leaves if it is the last form of a body.
    pub(crate) yields: Yields,
    pub(crate) lower: LowerForm,
}

/// A function that lowers a form.
pub(crate) type LowerForm =
    for<'a, 's> fn(&mut Lowering<'a, 's>, NodeId, Context) -> LowerResult<Lowered<'s>>;

/// The kind of value that a form leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yields {
    Value,
    Nothing,
    /// Control does not reach the end of the form.
    Never,
    /// The value of the form's last operand.
    Last,
    /// The value of the selected clause.
    Clauses,
    /// The value of the selected arm.
    Arms,
}

/// The documentation of a form.
///
/// ```
/// let each = wattle_lang::forms().find(|form| form.name == "each").unwrap();
/// assert_eq!(each.usage, "(each $x ARR …)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormDoc {
    /// The name, which is the first word of each use of the form.
    pub name: &'static str,
    /// The usage, such as `(let $x V)`.
    pub usage: &'static str,
    /// A one-sentence description without a full stop.
    pub about: &'static str,
}

/// Returns the documentation of each documented form, sorted by name.
pub fn forms() -> impl Iterator<Item = FormDoc> {
    let taught = FORMS.iter().filter(|form| !form.about.is_empty());
    taught.map(|form| FormDoc { name: form.name, usage: form.usage, about: form.about })
}

/// The meanings of a list's head in the language itself, regardless of the program's own
/// definitions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Head {
    pub(crate) form: Option<&'static Form>,
    pub(crate) instruction: Option<&'static Instruction>,
}

/// All known heads, by name.
static HEADS: LazyLock<NameMap<&str, Head>> = LazyLock::new(|| {
    let mut heads: NameMap<&str, Head> = NameMap::default();
    for form in FORMS {
        heads.entry(form.name).or_default().form = Some(form);
    }
    for (name, instruction) in instruction::all() {
        heads.entry(name).or_default().instruction = Some(instruction);
    }
    heads
});

/// Returns the meanings of a list's head. A `?` or `!` after the name of a form is ignored.
pub(crate) fn head(name: &str) -> Head {
    let marked = || {
        let plain = name.strip_suffix(['?', '!'])?;
        let head =
            plain.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| HEADS.get(plain))??;
        Some(Head { instruction: None, ..*head })
    };
    HEADS.get(name).copied().or_else(marked).unwrap_or_default()
}

/// Returns the form with the given name. A `?` or `!` after the name is ignored.
pub(crate) fn form(name: &str) -> Option<&'static Form> {
    head(name).form
}

/// Returns false if a list whose head is the name of a form is actually a WAT instruction.
pub(crate) fn applies(tree: &Tree<'_>, list: NodeId, head: &str) -> bool {
    // `(call $f)` is WAT, and `(call "program" …)` is a form.
    head != "call" || tree.item(list, 1).is_some_and(|first| tree.is_text(first))
}

/// Returns the usage of the form with the given name, or an empty string.
pub(crate) fn usage(head: &str) -> &'static str {
    form(head).map_or("", |form| form.usage)
}

/// Returns the operands of a form that takes exactly `N` operands.
pub(crate) fn operands<const N: usize>(tree: &Tree<'_>, list: NodeId) -> LowerResult<[NodeId; N]> {
    let mut nodes = tree.operands(list);
    match nodes.count(tree) {
        count if count == N => Ok([(); N].map(|()| nodes.next(tree).unwrap_or(list))),
        count => Err(operand_count(tree, list, N, count)),
    }
}

/// Returns all operands of a form.
pub(crate) fn all_operands(tree: &Tree<'_>, list: NodeId) -> Vec<NodeId> {
    tree.operands(list).iter(tree).collect()
}

/// Creates the fault for a form with the wrong number of operands. If there are too many operands
/// and the program lacks closing parentheses, the fault reports that the form is not closed.
pub(crate) fn operand_count(
    tree: &Tree<'_>,
    list: NodeId,
    wanted: usize,
    found: usize,
) -> Box<Fault> {
    let head = tree.head(list).unwrap_or("");
    let message = if found > wanted && !tree.open.is_empty() {
        wording::unclosed_form(head, None)
    } else {
        wording::form_operands(head, usage(head), wanted, found)
    };
    let is_method = |node: &NodeId| {
        let name = tree.atom(*node).and_then(|text| text.strip_prefix('.'));
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let message = match all_operands(tree, list).iter().find(|node| is_method(node)) {
        Some(method) => wording::form::method(head, tree.text(*method)),
        None => message,
    };
    Fault::new(tree.span(list), message)
}
