//! The forms of the language over WAT.
//!
//! A form is a row of [`FORMS`] and one function that emits its expansion. No other code depends on
//! the name of a form.

mod binding;
pub(super) mod call;
mod control;
mod join;
mod macros;
mod operator;
pub(super) mod value;
use crate::emit::flow::Context;
use crate::emit::{EmitResult, Emitter};
use crate::messages::{self, Fault};
use crate::tree::{NodeId, Tree};

/// A form.
pub(super) struct Form {
    pub(super) name: &'static str,
    /// The usage, such as `(let $x V)`.
    pub(super) usage: &'static str,
    /// The meaning, in one sentence without a full stop.
    pub(super) about: &'static str,
    /// Emits the expansion.
    pub(super) expand: for<'a, 's> fn(&mut Emitter<'a, 's>, NodeId, Context) -> EmitResult,
}

/// The documentation of a form.
///
/// ```
/// let each = wattle_lang::forms().find(|form| form.name == "each").unwrap();
/// assert_eq!(each.usage, "(each $item ARR …)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormDoc {
    /// The name, which is the head of its lists.
    pub name: &'static str,
    /// The usage, such as `(let $x V)`.
    pub usage: &'static str,
    /// The meaning, in one sentence without a full stop.
    pub about: &'static str,
}

/// Returns the documentation of all forms, sorted by name.
pub fn forms() -> impl ExactSizeIterator<Item = FormDoc> {
    FORMS.iter().map(|form| FormDoc { name: form.name, usage: form.usage, about: form.about })
}

/// All forms, sorted by name.
const FORMS: &[Form] = &[
    Form {
        name: "!=",
        usage: "(!= A B)",
        about: "1 if two numbers differ, else 0",
        expand: operator::compare,
    },
    Form {
        name: "%",
        usage: "(% A B)",
        about: "the remainder, with the sign of A",
        expand: operator::arithmetic,
    },
    Form { name: "*", usage: "(* A B …)", about: "the product", expand: operator::arithmetic },
    Form { name: "+", usage: "(+ A B …)", about: "the sum", expand: operator::arithmetic },
    Form {
        name: "-",
        usage: "(- A B)",
        about: "the difference; with one argument, its negative",
        expand: operator::arithmetic,
    },
    Form {
        name: "/",
        usage: "(/ A B)",
        about: "the quotient, rounded towards 0 if the numbers are integers",
        expand: operator::arithmetic,
    },
    Form {
        name: "<",
        usage: "(< A B)",
        about: "1 if A is less than B, else 0",
        expand: operator::compare,
    },
    Form {
        name: "<=",
        usage: "(<= A B)",
        about: "1 if A is at most B, else 0",
        expand: operator::compare,
    },
    Form {
        name: "=",
        usage: "(= A B)",
        about: "1 if two numbers are equal, else 0; strings are compared with `str.eq`",
        expand: operator::compare,
    },
    Form {
        name: ">",
        usage: "(> A B)",
        about: "1 if A is greater than B, else 0",
        expand: operator::compare,
    },
    Form {
        name: ">=",
        usage: "(>= A B)",
        about: "1 if A is at least B, else 0",
        expand: operator::compare,
    },
    Form {
        name: "and",
        usage: "(and A B …)",
        about: "1 if all are true, else 0; stops at the first that is 0",
        expand: operator::logic,
    },
    Form {
        name: "arg",
        usage: "(arg N)",
        about: "argument N; the program ends with EBOUND if it is missing",
        expand: binding::arg,
    },
    Form {
        name: "argv",
        usage: "(argv N $p)",
        about: "sets `$p` to argument N; the program ends with EBOUND if it is missing",
        expand: macros::argv,
    },
    Form {
        name: "break",
        usage: "(break)",
        about: "leaves the innermost `while`, `for` or `each`",
        expand: control::leave,
    },
    Form {
        name: "catch",
        usage: "(catch $v $e (CALL …))",
        about: "sets `$v` to a call's value and `$e` to its error code, 0 for success; for a call \
                without a value, `(catch $e (CALL …))`",
        expand: binding::catch,
    },
    Form {
        name: "check",
        usage: "(check $err)",
        about: "ends the program with `$err` if it is not 0",
        expand: macros::check,
    },
    Form {
        name: "cond",
        usage: "(cond (C …) … (else …))",
        about: "runs the first clause whose condition is true, and returns its value",
        expand: control::cond,
    },
    Form {
        name: "continue",
        usage: "(continue)",
        about: "continues with the next iteration of the innermost `while`, `for` or `each`",
        expand: control::next,
    },
    Form {
        name: "default",
        usage: "(default (CALL …) D)",
        about: "the call's value, or D if the call fails",
        expand: binding::default,
    },
    Form {
        name: "do",
        usage: "(do …)",
        about: "runs several forms in place of one, and returns the value of the last",
        expand: control::sequence,
    },
    Form {
        name: "each",
        usage: "(each $item ARR …)",
        about: "runs the body for each item of an array",
        expand: control::each,
    },
    Form {
        name: "fail",
        usage: "(fail CODE)",
        about: "ends the program with that error code; `(fail CODE P)` outputs a string first",
        expand: control::fail,
    },
    Form {
        name: "fmt",
        usage: "(fmt \"{} {i} {.2}\" S N X)",
        about: "formats a string: `{}` is a string, `{i}` an i32, `{.2}` an f64 with 2 digits, \
                `{{` a brace",
        expand: join::fmt,
    },
    Form {
        name: "for",
        usage: "(for $i FROM TO …)",
        about: "runs the body with `$i` from FROM up to TO, TO excluded",
        expand: control::count,
    },
    Form {
        name: "let",
        usage: "(let $x V)",
        about: "declares `$x` and sets it; `(let $x i64 V)` with a type",
        expand: binding::declare,
    },
    Form { name: "not", usage: "(not A)", about: "1 if A is 0, else 0", expand: operator::not },
    Form {
        name: "or",
        usage: "(or A B …)",
        about: "1 if any is true, else 0; stops at the first that is not 0",
        expand: operator::logic,
    },
    Form {
        name: "out",
        usage: "(out P)",
        about: "outputs a string as a result",
        expand: macros::resv,
    },
    Form {
        name: "resv",
        usage: "(resv $p)",
        about: "outputs a string as a result",
        expand: macros::resv,
    },
    Form {
        name: "ret",
        usage: "(ret P)",
        about: "outputs a string and ends the program; `(ret)` only ends it",
        expand: control::ret,
    },
    Form { name: "set", usage: "(set $x V)", about: "sets a local", expand: binding::set },
    Form {
        name: "unless",
        usage: "(unless C …)",
        about: "runs the body if C is 0",
        expand: control::when,
    },
    Form {
        name: "when",
        usage: "(when C …)",
        about: "runs the body if C is not 0",
        expand: control::when,
    },
    Form {
        name: "while",
        usage: "(while C …)",
        about: "repeats the body while C is not 0",
        expand: control::repeat,
    },
];

/// Returns the form with the given name.
pub(super) fn form(head: &str) -> Option<&'static Form> {
    FORMS.binary_search_by(|form| form.name.cmp(head)).ok().and_then(|at| FORMS.get(at))
}

/// Returns the usage of the form with the given name, or an empty string.
pub(super) fn usage(head: &str) -> &'static str {
    form(head).map_or("", |form| form.usage)
}

/// Returns the operands of a form that takes exactly `N`.
pub(super) fn operands<const N: usize>(
    tree: &Tree<'_>,
    list: NodeId,
) -> Result<[NodeId; N], Box<Fault>> {
    let mut nodes = tree.children(list);
    nodes.next(tree);
    let mut found = [list; N];
    let mut count = 0;
    while let Some(node) = nodes.next(tree) {
        if let Some(slot) = found.get_mut(count) {
            *slot = node;
        }
        count += 1;
    }
    if count == N { Ok(found) } else { Err(operand_count(tree, list, N, count)) }
}

/// Returns all operands of a form.
pub(super) fn all_operands(tree: &Tree<'_>, list: NodeId) -> Vec<NodeId> {
    let mut nodes = tree.children(list);
    nodes.next(tree);
    std::iter::from_fn(|| nodes.next(tree)).collect()
}

/// Reports that a form has the wrong number of operands. If the program lacks parentheses, reports
/// that the form is not closed.
pub(super) fn operand_count(
    tree: &Tree<'_>,
    list: NodeId,
    wanted: usize,
    found: usize,
) -> Box<Fault> {
    let head = tree.head(list).unwrap_or("");
    let message = match found > wanted && !tree.open.is_empty() {
        true => messages::unclosed_form(head, None),
        false => messages::form_operands(head, usage(head), wanted, found),
    };
    Fault::new(tree.span(list), message)
}

/// Parses an atom as an index, such as that of a local.
pub(super) fn index(text: &str) -> Option<usize> {
    let (radix, digits) = match text.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    usize::from_str_radix(&digits.replace('_', ""), radix).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::FORMS.is_sorted_by(|a, b| a.name < b.name));
    }
}
