//! Bounds of integers, derived from code. Arithmetic that stays within the bounds of its type needs
//! no check.

use super::output::{Kind, Wat};
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};

/// The bounds of an integer's value: the smallest and the largest possible value.
pub(crate) type Range = (i64, i64);

/// Maximum depth to which code is searched for bounds.
const MAX_DEPTH: usize = 24;

impl Wat<'_> {
    /// Returns the bounds of the i32 that this code leaves on the stack, if they are known.
    pub(crate) fn range(&self) -> Option<Range> {
        self.range_within(MAX_DEPTH)
    }

    /// Returns true if the integer that this code leaves on the stack cannot be negative, and false
    /// if it can be negative but not positive. Returns `None` if the sign is unknown.
    pub(crate) fn is_positive(&self) -> Option<bool> {
        let (least, largest) = self.constant().map(|n| (n, n)).or_else(|| self.range())?;
        match (least >= 0, largest <= 0) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    fn range_within(&self, depth: usize) -> Option<Range> {
        let depth = depth.checked_sub(1)?;
        if let Some(known) = &self.known {
            return Some(**known);
        }
        let (head, items) = match &self.kind {
            Kind::Sequence(pieces) => return pieces.last()?.range_within(depth),
            Kind::List(head, items) => (head.as_ref(), items.as_slice()),
            _ => return None,
        };
        let name = head.split(' ').next().unwrap_or(head);
        if name == "i32.const" {
            return self.constant().map(|number| (number, number));
        }
        if is_comparison(name) {
            return Some((0, 1));
        }
        let of = |at: usize| items.get(at)?.range_within(depth);
        match (name, items.len()) {
            ("i32.load8_u", _) => Some((0, 255)),
            ("i32.add" | "i32.sub" | "i32.mul", 2) => of_operation(name, of(0)?, of(1)?),
            ("if", 4) => {
                let arm = |at: usize| match &items.get(at)?.kind {
                    Kind::List(_, pieces) => pieces.last()?.range_within(depth),
                    _ => None,
                };
                let (then, other) = (arm(2)?, arm(3)?);
                Some((then.0.min(other.0), then.1.max(other.1)))
            }
            _ => None,
        }
    }
}

/// Returns the bounds of `a OP b`, where `name` is the instruction that computes it, or `None` if
/// the result might wrap around.
pub(crate) fn of_operation(name: &str, a: Range, b: Range) -> Option<Range> {
    let (least, largest) = match name {
        "i32.add" => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        "i32.sub" => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        "i32.mul" => {
            let products = [
                a.0.checked_mul(b.0)?,
                a.0.checked_mul(b.1)?,
                a.1.checked_mul(b.0)?,
                a.1.checked_mul(b.1)?,
            ];
            (products.into_iter().min()?, products.into_iter().max()?)
        }
        _ => return None,
    };
    (least >= i64::from(i32::MIN) && largest <= i64::from(i32::MAX)).then_some((least, largest))
}

fn is_comparison(name: &str) -> bool {
    let operation = name.split_once('.').map_or("", |(_, operation)| operation);
    matches!(
        operation,
        "eq" | "ne"
            | "eqz"
            | "lt"
            | "gt"
            | "le"
            | "ge"
            | "lt_s"
            | "gt_s"
            | "le_s"
            | "ge_s"
            | "lt_u"
            | "gt_u"
            | "le_u"
            | "ge_u"
    )
}

/// The forms that set variables, each with the number of leading operands that may name a variable
/// to set.
const SETTERS: [(&str, usize); 9] = [
    ("*=", 1),
    ("+=", 1),
    ("-=", 1),
    ("append", 1),
    ("catch", 3),
    ("each", 2),
    ("for", 1),
    ("let", 1),
    ("set", 1),
];

/// Returns true if anything in the nodes may set the variable with this name: a form, a WAT
/// instruction, or a list of names, as in `match`.
pub(crate) fn may_set(tree: &Tree<'_>, nodes: Nodes, name: &str) -> bool {
    nodes.iter_deep(tree).any(|node| match tree.node(node).kind {
        NodeKind::List => sets(tree, node, name),
        _ => matches!(tree.atom(node), Some("local.set" | "local.tee")),
    })
}

fn sets(tree: &Tree<'_>, list: NodeId, name: &str) -> bool {
    let mut all = tree.children(list).iter(tree);
    let is_name = |node: NodeId| tree.name(node) == Some(name);
    let Some(head) = tree.head(list) else { return all.any(is_name) };
    if head.starts_with('$') {
        // This is a list of names, or a call, which does not change its operands.
        let parent = tree.parent(list).and_then(|parent| tree.head(parent));
        return matches!(parent, Some("fn" | "let" | "match")) && all.any(is_name);
    }
    let targets = SETTERS.iter().find(|(setter, _)| *setter == head).map_or(0, |(_, count)| *count);
    let operands: Vec<NodeId> = all.skip(1).collect();
    // `let` and `set` may contain several variables, each followed by its value.
    let targets = match head {
        "let" | "set" if operands.len() > 3 => operands.len(),
        _ => targets,
    };
    operands.into_iter().take(targets).any(is_name)
}
