//! WAT types: the types of a program's functions and globals, and its named function types.

use crate::lower::program::{Func, Program};
use crate::lower::table::Table;
use crate::syntax::tree::{NodeId, Nodes, Tree};
use crate::types::Val;

/// Maximum number of parameters, or of results, in a type. This is the engine's limit.
const MAX_VALUES: usize = 1_000;

/// The parameters and results of a function or block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FuncType {
    pub(crate) params: Vec<Val>,
    pub(crate) results: Vec<Val>,
}

/// The type of a global.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    pub(crate) ty: Val,
    pub(crate) mutable: bool,
}

/// The types of a program. A type that lowering does not support is `None`.
pub(crate) struct Types<'s> {
    pub(crate) funcs: Vec<Option<FuncType>>,
    pub(crate) globals: Table<'s, Option<Global>>,
    pub(crate) named: Table<'s, Option<FuncType>>,
}

impl<'s> Types<'s> {
    pub(crate) fn read(tree: &Tree<'s>, program: &Program<'s>) -> Types<'s> {
        let mut types =
            Types { funcs: Vec::new(), globals: Table::default(), named: Table::default() };
        for item in &program.items {
            let mut nodes = tree.children(*item);
            let head = nodes.next(tree).and_then(|head| tree.atom(head));
            let name = nodes.next_name(tree);
            match head {
                Some("global") => {
                    types.globals.push(name, global(tree, nodes));
                }
                Some("type") => {
                    let described =
                        nodes.next(tree).filter(|node| tree.head(*node) == Some("func"));
                    let ty =
                        described.and_then(|node| types.signature(tree, &mut tree.operands(node)));
                    types.named.push(name, ty);
                }
                _ => {}
            }
        }
        let last = program.funcs.len().saturating_sub(1);
        for (at, func) in program.funcs.iter().enumerate() {
            let ty = if at == last {
                Some(FuncType { params: Vec::new(), results: vec![Val::I32] })
            } else {
                types.of(tree, func)
            };
            types.funcs.push(ty);
        }
        types
    }

    fn of(&self, tree: &Tree<'s>, func: &Func<'s>) -> Option<FuncType> {
        let mut whole = FuncType::default();
        for node in &func.header {
            // A `(type …)` may declare parameters that the header does not list. The validator
            // checks such a function.
            if tree.head(*node) == Some("type") {
                return None;
            }
            add(tree, *node, &mut whole)?;
        }
        Some(whole)
    }

    /// Reads `(type $t)`, `(param …)` and `(result …)` lists, up to the first other node. Returns
    /// the type that they describe, or `None` if lowering does not support the type.
    pub(crate) fn signature(&self, tree: &Tree<'s>, nodes: &mut Nodes) -> Option<FuncType> {
        let mut whole = FuncType::default();
        let mut named = None;
        while let Some(node) = nodes.peek(tree) {
            match tree.head(node) {
                Some("type") => {
                    named = Some(self.named.get_word(tree.text(tree.item(node, 1)?))?.clone()?);
                }
                Some("param" | "result") => add(tree, node, &mut whole)?,
                _ => break,
            }
            nodes.next(tree);
        }
        Some(named.unwrap_or(whole))
    }
}

/// Adds the types of a `(param …)` or `(result …)` list to `whole`. Returns `None` if lowering does
/// not support one of the types, or if there are too many.
fn add(tree: &Tree<'_>, list: NodeId, whole: &mut FuncType) -> Option<()> {
    let mut nodes = tree.children(list);
    let to = match nodes.next(tree).and_then(|head| tree.atom(head)) {
        Some("param") => &mut whole.params,
        _ => &mut whole.results,
    };
    let mut pending = 0;
    while let Some(node) = nodes.next(tree) {
        if tree.name(node).is_some() {
            pending += 1;
            continue;
        }
        let ty = Val::from_wat(tree.atom(node)?)?;
        to.extend(std::iter::repeat_n(ty, pending.max(1)));
        if to.len() > MAX_VALUES {
            return None;
        }
        pending = 0;
    }
    Some(())
}

fn global(tree: &Tree<'_>, nodes: Nodes) -> Option<Global> {
    let node = nodes.iter(tree).find(|node| tree.head(*node) != Some("export"))?;
    let mutable = tree.head(node) == Some("mut");
    let ty = if mutable { tree.item(node, 1)? } else { node };
    Some(Global { ty: Val::from_wat(tree.atom(ty)?)?, mutable })
}
