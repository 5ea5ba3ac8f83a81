//! The small language over WAT: what each form is called and expands to.
//!
//! A form is a row of [`FORMS`] and one function that writes its expansion. Nothing else knows a form by its name.

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

/// One form.
pub(super) struct Form {
    pub(super) name: &'static str,
    /// How it is written.
    pub(super) usage: &'static str,
    /// What it means, in one sentence without a full stop.
    pub(super) about: &'static str,
    /// Writes its expansion.
    pub(super) expand: for<'a, 's> fn(&mut Emitter<'a, 's>, NodeId, Context) -> EmitResult,
}

/// What the manual says of a form of the language.
///
/// ```
/// let each = wattle_lang::forms().find(|form| form.name == "each").unwrap();
/// assert_eq!(each.usage, "(each $item ARR …)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormDoc {
    /// The head that it is written with.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it means, in one sentence without a full stop.
    pub about: &'static str,
}

/// The forms of the language, by name.
pub fn forms() -> impl ExactSizeIterator<Item = FormDoc> {
    FORMS.iter().map(|form| FormDoc { name: form.name, usage: form.usage, about: form.about })
}

/// All forms, sorted by name.
const FORMS: &[Form] = &[
    Form { name: "!=", usage: "(!= A B)", about: "1 where two numbers differ, else 0", expand: operator::compare },
    Form { name: "%", usage: "(% A B)", about: "the remainder, with the sign of A", expand: operator::arithmetic },
    Form { name: "*", usage: "(* A B …)", about: "the product", expand: operator::arithmetic },
    Form { name: "+", usage: "(+ A B …)", about: "the sum", expand: operator::arithmetic },
    Form {
        name: "-",
        usage: "(- A B)",
        about: "the difference; of one number its negative",
        expand: operator::arithmetic,
    },
    Form {
        name: "/",
        usage: "(/ A B)",
        about: "the quotient, cut towards 0 where the numbers are integers",
        expand: operator::arithmetic,
    },
    Form { name: "<", usage: "(< A B)", about: "1 where A is less than B, else 0", expand: operator::compare },
    Form { name: "<=", usage: "(<= A B)", about: "1 where A is at most B, else 0", expand: operator::compare },
    Form {
        name: "=",
        usage: "(= A B)",
        about: "1 where two numbers are equal, else 0; strings are compared with `str.eq`",
        expand: operator::compare,
    },
    Form { name: ">", usage: "(> A B)", about: "1 where A is greater than B, else 0", expand: operator::compare },
    Form { name: ">=", usage: "(>= A B)", about: "1 where A is at least B, else 0", expand: operator::compare },
    Form {
        name: "and",
        usage: "(and A B …)",
        about: "1 where all are true, else 0; stops at the first that is 0",
        expand: operator::logic,
    },
    Form {
        name: "arg",
        usage: "(arg N)",
        about: "argument N; the program ends with EBOUND where it is missing",
        expand: binding::arg,
    },
    Form {
        name: "argv",
        usage: "(argv N $p)",
        about: "sets `$p` to argument N; the program ends with EBOUND where it is missing",
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
        about: "sets `$v` to the value and `$e` to the error code of a call, 0 where it worked; of a call without a value `(catch $e (CALL …))`",
        expand: binding::catch,
    },
    Form {
        name: "check",
        usage: "(check $err)",
        about: "ends the program with `$err` where it is not 0",
        expand: macros::check,
    },
    Form {
        name: "cond",
        usage: "(cond (C …) … (else …))",
        about: "the first clause whose condition is true; also as a value",
        expand: control::cond,
    },
    Form {
        name: "continue",
        usage: "(continue)",
        about: "goes on with the next round of the innermost `while`, `for` or `each`",
        expand: control::next,
    },
    Form {
        name: "default",
        usage: "(default (CALL …) D)",
        about: "the call's value, or D where it fails",
        expand: binding::default,
    },
    Form {
        name: "do",
        usage: "(do …)",
        about: "several forms where one is expected; the value of the last",
        expand: control::sequence,
    },
    Form {
        name: "each",
        usage: "(each $item ARR …)",
        about: "repeats for every item of an array",
        expand: control::each,
    },
    Form {
        name: "fail",
        usage: "(fail CODE)",
        about: "ends the program with that error code; `(fail CODE P)` puts out a string before",
        expand: control::fail,
    },
    Form {
        name: "fmt",
        usage: "(fmt \"{} {i} {.2}\" S N X)",
        about: "joins text: `{}` a string, `{i}` an i32, `{.2}` an f64 with 2 digits, `{{` a brace",
        expand: join::fmt,
    },
    Form {
        name: "for",
        usage: "(for $i FROM TO …)",
        about: "repeats with `$i` from FROM up to TO, TO excluded",
        expand: control::count,
    },
    Form {
        name: "let",
        usage: "(let $x V)",
        about: "declares `$x` and sets it; `(let $x i64 V)` with a type",
        expand: binding::declare,
    },
    Form { name: "not", usage: "(not A)", about: "1 where A is 0, else 0", expand: operator::not },
    Form {
        name: "or",
        usage: "(or A B …)",
        about: "1 where any is true, else 0; stops at the first that is not 0",
        expand: operator::logic,
    },
    Form { name: "out", usage: "(out P)", about: "puts out a string as a result", expand: macros::resv },
    Form { name: "resv", usage: "(resv $p)", about: "puts out a string as a result", expand: macros::resv },
    Form {
        name: "ret",
        usage: "(ret P)",
        about: "puts out a string and ends the program; `(ret)` just ends it",
        expand: control::ret,
    },
    Form { name: "set", usage: "(set $x V)", about: "sets a local", expand: binding::set },
    Form { name: "unless", usage: "(unless C …)", about: "does the rest where C is 0", expand: control::when },
    Form { name: "when", usage: "(when C …)", about: "does the rest where C is not 0", expand: control::when },
    Form { name: "while", usage: "(while C …)", about: "repeats as long as C is not 0", expand: control::repeat },
];

/// The form of that head.
pub(super) fn form(head: &str) -> Option<&'static Form> {
    FORMS.binary_search_by(|form| form.name.cmp(head)).ok().and_then(|at| FORMS.get(at))
}

/// How the form of that head is written.
pub(super) fn usage(head: &str) -> &'static str {
    form(head).map_or("", |form| form.usage)
}

/// The operands of a form that takes `N` of them.
pub(super) fn operands<const N: usize>(tree: &Tree<'_>, list: NodeId) -> Result<[NodeId; N], Box<Fault>> {
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

/// All operands of a form.
pub(super) fn all_operands(tree: &Tree<'_>, list: NodeId) -> Vec<NodeId> {
    let mut nodes = tree.children(list);
    nodes.next(tree);
    std::iter::from_fn(|| nodes.next(tree)).collect()
}

/// Says that a form has the wrong number of operands; or, where parentheses are missing, that it is not closed.
pub(super) fn operand_count(tree: &Tree<'_>, list: NodeId, wanted: usize, found: usize) -> Box<Fault> {
    let head = tree.head(list).unwrap_or("");
    let message = match found > wanted && !tree.open.is_empty() {
        true => messages::unclosed_form(head, None),
        false => messages::form_operands(head, usage(head), wanted, found),
    };
    Fault::new(tree.span(list), message)
}

/// The number that an atom is where it counts things, such as locals.
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
