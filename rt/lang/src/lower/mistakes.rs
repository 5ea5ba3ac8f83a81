//! Checks for code that is valid, or nearly so, but is probably not what the author meant, and
//! fixes for names that are not variables.

use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::diagnose::wording::{self, types as type_wording};
use crate::lower::{LowerResult, Lowering, forms};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::Type;

/// Forms and functions whose strings are plain text. In such a string, the name of a variable after
/// a `$` or in braces is a mistake. In other strings, such as those of `json.query` and
/// `shell.run`, such a name may be intended.
const TEXTS: &[&str] =
    &["append", "fail", "fmt", "fs.append", "fs.write", "out", "print", "ret", "str", "str.cat"];

/// Maximum number of variables in a `set` that are checked for a wrong order.
const MAX_SET: usize = 8;

impl Lowering<'_, '_> {
    /// Warns about a string that is written like a template of another language: it contains the
    /// name of a variable, or a placeholder without a value. If `is_template` is true, the string
    /// is a template with values, in which placeholders such as `{i}` are valid.
    pub(crate) fn warn_of_template(&mut self, node: NodeId, is_template: bool) {
        let tree = self.tree;
        let text = tree.text(node);
        let list = tree.parent(node);
        let head = list.and_then(|list| tree.head(list)).unwrap_or("").trim_end_matches(['?', '!']);
        let message = match self.inserted(text, TEXTS.contains(&head)) {
            Some((found, _)) if is_template && found.starts_with('{') => return,
            Some((found, name)) => wording::template_in_string(found, name, text),
            None if !is_template
                && matches!(head, "out" | "ret" | "print")
                && lacks_value(text) =>
            {
                let alone = list.is_some_and(|list| forms::all_operands(tree, list).len() == 1);
                if !alone {
                    return;
                }
                wording::placeholder_without_value(head, text)
            }
            None => return,
        };
        self.warn(node, message);
    }

    /// Returns the first substring that stands for a variable's value in another language, such as
    /// `${name}`, and the variable's name without its `$`. If `is_text` is false, considers only
    /// the notation `${name}`.
    fn inserted<'t>(&self, text: &'t str, is_text: bool) -> Option<(&'t str, &'t str)> {
        text.match_indices(['$', '{']).find_map(|(at, _)| {
            let rest = text.get(at..)?;
            let open = ["${", "{$", "{", "$"].into_iter().find(|open| rest.starts_with(open))?;
            // A doubled brace denotes a brace.
            if open.starts_with('{') && text.get(..at).is_some_and(|before| before.ends_with('{')) {
                return None;
            }
            let inside = rest.get(open.len()..)?;
            let is_braced = open != "$";
            let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || is_braced && c == '-');
            let (name, after) = inside.split_at(inside.find(ends).unwrap_or(inside.len()));
            let is_whole = !is_braced || after.starts_with('}');
            let is_meant = is_text || open == "${";
            if !is_whole || !is_meant || self.func.scope.get(&format!("${name}")).is_none() {
                return None;
            }
            Some((rest.get(..open.len() + name.len() + usize::from(is_braced))?, name))
        })
    }

    /// Returns a fault if a node is a quoted character, whose value is a number. Called where a
    /// string is expected. In a form that outputs or joins values, a number is converted to digits,
    /// so a character only causes a warning there.
    pub(crate) fn check_character(&mut self, form: NodeId, node: NodeId) -> LowerResult<()> {
        let text = self.tree.text(node);
        let Some(code) = literal::character(text) else { return Ok(()) };
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        let string = if inner == "\"" { "\"\\\"\"".to_owned() } else { format!("\"{inner}\"") };
        let head = self.tree.head(form).unwrap_or("").trim_end_matches(['?', '!']);
        if matches!(head, "append" | "fail" | "fmt" | "out" | "print" | "ret" | "str") {
            self.warn(node, type_wording::character_as_digits(text, code, &string));
            return Ok(());
        }
        self.fault(node, type_wording::character_as_string(text, &string))
    }

    /// Warns about a quotient of integers that is converted to a float, because the division has
    /// already dropped its fraction. Does not warn about an operand of `math.floor`, which drops
    /// the fraction anyway.
    pub(crate) fn warn_of_quotient(&mut self, form: NodeId, node: NodeId) {
        let tree = self.tree;
        if tree.head(node) != Some("/") || tree.head(form) == Some("math.floor") {
            return;
        }
        if let [a, b] = forms::all_operands(tree, node).as_slice() {
            let message = type_wording::integer_quotient(tree.text(*a), tree.text(*b));
            self.warn(node, message);
        }
    }

    /// Warns about a `set` of several variables if each of two variables occurs in the new value of
    /// the other. Other languages would assign both at once.
    pub(crate) fn warn_of_order(&mut self, pairs: &[[NodeId; 2]]) {
        let tree = self.tree;
        for (at, [first, value]) in pairs.iter().enumerate().take(MAX_SET) {
            let Some(name) = tree.name(*first) else { continue };
            let later = pairs.iter().take(MAX_SET).skip(at + 1).find(|[target, later]| {
                tree.name(*target).is_some_and(|other| {
                    other != name && self.mentions(*value, other) && self.mentions(*later, name)
                })
            });
            if let Some([target, later]) = later {
                let other = tree.text(*target);
                self.warn(*later, type_wording::set_in_order(name, other));
                return;
            }
        }
    }

    /// Returns true if a node is a variable's name or contains it.
    fn mentions(&self, node: NodeId, name: &str) -> bool {
        let tree = self.tree;
        let is_name = |node: NodeId| tree.name(node) == Some(name);
        is_name(node) || tree.children(node).iter_deep(tree).any(is_name)
    }
}

/// Returns true if a string literal is in plain quotes and contains words and a placeholder. A
/// string with escaped quotes is probably JSON, in which `{}` is an empty object.
fn lacks_value(text: &str) -> bool {
    let words = text.replace("{}", "");
    text.starts_with('"')
        && words.len() < text.len()
        && !text.contains("\\\"")
        && words.contains(char::is_alphabetic)
}

impl Lowering<'_, '_> {
    /// Returns the change that turns a bare name into a call if a host function without parameters
    /// has this name.
    pub(super) fn bare_call(&self, name: &str) -> Option<Change> {
        let name = name.trim_end_matches('?');
        let known = self.host.get(name)?;
        known.params.is_empty().then(|| Change::Replace(format!("({name})")))
    }

    /// Returns the change that removes the colon after a variable's name, if a form declares the
    /// variable as `$x:` or `$x:int`.
    pub(super) fn remove_colon(&self, name: &str) -> Option<Change> {
        let typed = |other: &str| {
            let ty = other.strip_prefix(name)?.strip_prefix(':')?;
            (ty.is_empty() || Type::from_name(ty).is_some()).then(|| ty.to_owned())
        };
        let (declared, ty) =
            self.func.scope.names().find_map(|other| Some((other, typed(other)?)))?;
        let node = self.func.scope.get(declared)?.node;
        let space = if ty.is_empty() { "" } else { " " };
        Some(Change::edit(self.tree.span(node), format!("{name}{space}{ty}")))
    }

    /// Returns the change that declares the local `name`, which is set with `local.set` or
    /// `local.tee` but not declared. Returns `None` if the local is never set, or if the name is
    /// probably a misspelling of a known variable.
    pub(super) fn declare_set_local(&self, name: &str) -> Option<Change> {
        let tree = self.tree;
        if nearest::certain(name, self.known_variables()).is_some() {
            return None;
        }
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let sets = matches!(tree.head(node), Some("local.set" | "local.tee"));
            if sets
                && tree.items(node).get(1).is_some_and(|target| tree.name(*target) == Some(name))
            {
                let start = tree.span(node).start;
                return Some(Change::edit(start..start, format!("(local {name} i32) ")));
            }
        }
        None
    }

    /// Returns the line of the first form in the program that declares a variable with this name.
    pub(super) fn declared_later(&self, name: &str) -> Option<u32> {
        let tree = self.tree;
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let declares =
                matches!(tree.head(node), Some("let" | "catch" | "for" | "each" | "argv"));
            let operands = forms::all_operands(tree, node);
            let names = match tree.head(node) {
                Some("let") => operands.len().saturating_sub(1).max(1),
                _ => 2,
            };
            if declares
                && operands.iter().take(names).any(|operand| tree.name(*operand) == Some(name))
            {
                return Some(self.tree.line(node));
            }
        }
        None
    }
}
