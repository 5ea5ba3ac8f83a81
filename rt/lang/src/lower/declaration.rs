//! Declarations of functions with `fn`.

use super::locals::Locals;
use super::program::Func;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::Type;

/// A parameter of a function declared with `fn`.
pub(crate) struct FnParam<'s> {
    /// The name, with its `$`.
    pub(crate) name: &'s str,
    pub(crate) node: NodeId,
    /// The declared type. `None` if the type is inferred.
    pub(crate) declared: Option<Type>,
}

/// Splits a declaration such as `(fn $f ($a (b str)) BODY…)` into its name, parameters and body.
pub(super) fn fn_func<'s>(tree: &mut Tree<'s>, list: NodeId) -> Result<Func<'s>, Box<Fault>> {
    let mut nodes = tree.operands(list);
    let own = nodes.next(tree);
    let Some(name) = own.and_then(|own| tree.name(own)) else {
        let found = own.map_or("", |own| tree.text(own));
        let at = own.unwrap_or(list);
        return Err(Fault::new(tree.span(at), wording::fn_name(found)));
    };
    let params = nodes.next(tree).filter(|node| tree.is_list(*node));
    let Some(params) = params else {
        return Err(Fault::new(tree.span(list), wording::fn_params(name)));
    };
    let mut all: Vec<FnParam<'s>> = Vec::new();
    let mut inner = tree.children(params);
    while let Some(node) = inner.next(tree) {
        let param = fn_param(tree, node)?;
        if all.iter().any(|known| known.name == param.name) {
            return Err(Fault::new(tree.span(node), wording::same_param(param.name)));
        }
        all.push(param);
    }
    let mut func = Func {
        node: Some(list),
        name: Some(name),
        header: Vec::new(),
        locals: Locals::default(),
        fn_params: Some(all),
        body: nodes,
    };
    func.collect(tree)?;
    Ok(func)
}

/// Returns the name of a parameter that is declared without its `$`, such as `$x` for `x`. If the
/// source does not contain this name, returns the word itself.
fn dollar_name<'s>(tree: &Tree<'s>, word: &'s str) -> &'s str {
    (0..tree.len())
        .filter_map(|node| tree.name(NodeId(node)))
        .find(|name| name.strip_prefix('$') == Some(word))
        .unwrap_or(word)
}

/// Reads a parameter: `$x`, or `(x str)` with its type.
fn fn_param<'s>(tree: &Tree<'s>, node: NodeId) -> Result<FnParam<'s>, Box<Fault>> {
    if let Some(name) = tree.name(node) {
        return Ok(FnParam { name, node, declared: None });
    }
    let is_list = tree.is_list(node);
    let parts: Vec<NodeId> = tree.children(node).iter(tree).collect();
    let fault = || Fault::new(tree.span(node), wording::fn_param(tree.text(node)));
    let [name, ty] = parts.as_slice() else { return Err(fault()) };
    let word = tree.atom(*name).filter(|_| is_list).ok_or_else(fault)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = match word.strip_prefix('$') {
        Some(_) => word,
        None if word.chars().all(is_word) => dollar_name(tree, word),
        None => return Err(fault()),
    };
    match tree.atom(*ty).and_then(Type::from_name) {
        Some(ty) => Ok(FnParam { name, node, declared: Some(ty) }),
        None => Err(Fault::new(tree.span(*ty), wording::fn_param_type(tree.text(*ty)))),
    }
}
