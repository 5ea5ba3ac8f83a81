//! The forms that the language adds to WAT.
//!
//! A form consists of a row in [`FORMS`] and a method that lowers it.

use std::sync::LazyLock;

use crate::NameMap;
use crate::diagnose::wording::{self, Fault};
use crate::lower::flow::Context;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::instruction::{self, Instruction};

mod arithmetic;
mod binding;
pub(crate) mod call;
mod collection;
mod control;
mod convert;
mod failure;
mod items;
mod loops;
mod path;
mod program;
mod text;

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
    for<'a, 's> fn(&mut Lowering<'a, 's>, NodeId, Context) -> CodeResult<'s>;

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

/// Returns true if a list with this head has a meaning in the language itself, as a form or as an
/// instruction. A program of this name could only be called with `(call "NAME" …)`.
///
/// ```
/// assert!(wattle_lang::is_word("each") && wattle_lang::is_word("i32.add"));
/// assert!(!wattle_lang::is_word("file_read"));
/// ```
#[must_use]
pub fn is_word(name: &str) -> bool {
    let head = head(name);
    head.form.is_some() || head.instruction.is_some()
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
    // `(call $f)` is WAT, and `(call "program" …)` and `(call (if …) …)` are forms.
    head != "call" || tree.item(list, 1).is_some_and(|first| tree.atom(first).is_none())
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
    Fault::at(tree, list, message)
}

macro_rules! forms {
    ($($name:literal $usage:literal $yields:ident $lower:ident $about:literal;)*) => {
        /// All forms, sorted by name.
        pub(crate) const FORMS: &[Form] = &[$(Form {
            name: $name,
            usage: $usage,
            about: $about,
            yields: Yields::$yields,
            lower: |lowering, list, context| lowering.$lower(list, context),
        }),*];
    };
}

// Each row: the form's name, its usage, the value that it leaves, the method that lowers it, and
// its description.
forms! {
    "!=" "(!= A B)" Value lower_compare "true if two numbers or strings differ";
    "%" "(% A B)" Value lower_arithmetic "the remainder, with the sign of A";
    "&" "(& A B …)" Value lower_bits "bitwise and of integers";
    "*" "(* A B …)" Value lower_arithmetic "the product";
    "*=" "(*= $x N)" Nothing lower_update "sets `$x` to its product with N";
    "+" "(+ A B …)" Value lower_arithmetic "the sum; traps if it does not fit";
    "+=" "(+= $x N)" Nothing lower_update "adds N to `$x`";
    "-" "(- A B)" Value lower_arithmetic "the difference; with one argument, its negative";
    "-=" "(-= $x N)" Nothing lower_update "subtracts N from `$x`";
    "/" "(/ A B)" Value lower_arithmetic "the quotient; of two ints, rounded towards 0";
    "<" "(< A B)" Value lower_compare "true if A is less than B";
    "<<" "(<< A N)" Value lower_bits "shifts an integer left by N bits";
    "<=" "(<= A B)" Value lower_compare "true if A is at most B";
    "=" "(= A B)" Value lower_compare "true if two numbers or strings are equal";
    ">" "(> A B)" Value lower_compare "true if A is greater than B";
    ">=" "(>= A B)" Value lower_compare "true if A is at least B";
    ">>" "(>> A N)" Value lower_bits "shifts an integer right by N bits, keeping its sign";
    "^" "(^ A B …)" Value lower_bits "bitwise exclusive or of integers";
    "abs" "(abs X)" Value lower_abs "the absolute value of a number";
    "all" "(all X F)" Value lower_search "true if F is true for all items";
    "and" "(and A B …)" Value lower_logic "1 if all are true, else 0; stops at the first that is 0";
    "any" "(any X F)" Value lower_search "true if F is true for any item";
    "append" "(append $s \"{}\" V …)" Nothing lower_append
        "adds formatted text to the end of a string";
    "arg" "(arg N)" Value lower_arg "argument N, from 0; fails with EBOUND if it is missing";
    "args" "(args)" Value lower_args "an array of all arguments";
    "argv" "(argv N $p)" Nothing lower_argv "";
    "arr" "(arr A B …)" Value lower_arr "a new array of these strings";
    "at" "(at X I)" Value lower_collection
        "the item of an array, the value of a map's key, or the element of a number array; `(at X \
         I D)` is D if there is no such item or key";
    "avg" "(avg X by K)" Value lower_items
        "the mean; `median`, `stdev` and `(percentile X 95 by K)` are used alike";
    "big" "(big X)" Value lower_simple "a whole number without bound, from a number or text";
    "break" "(break)" Never lower_break "leaves the innermost loop";
    "bytes" "(bytes N)" Value lower_numbers "like `ints`, for numbers from 0 to 255";
    "call" "(call \"program\" ARG …)" Value lower_call
        "runs a catalog program and returns its results, one a line";
    "catch" "(catch $v $e $why CALL)" Nothing lower_catch
        "sets `$v` to the value, `$e` to the error code (0 if it succeeded) and `$why` to the \
         reason; the last two names may be left out";
    "check" "(check $err)" Nothing lower_check "";
    "concat" "(concat A B …)" Value lower_concat "a list of the items of several lists";
    "cond" "(cond (C …) … (else …))" Clauses lower_cond
        "runs the first clause whose condition is true, and returns its value";
    "continue" "(continue)" Never lower_continue
        "goes on with the next iteration of the innermost loop";
    "copy" "(copy V)" Value lower_simple "a copy of a value and all its parts";
    "count" "(count X by K)" Value lower_items "an object with the number of items for each key";
    "csv" "(csv S)" Value lower_simple
        "a list of objects, from CSV with a header line; `(csv.text LIST)` is its CSV";
    "csv.text" "(csv.text LIST)" Value lower_simple "";
    "default" "(default CALL D)" Value lower_default
        "the call's value, or D if anything in it fails";
    "del" "(del V K)" Value lower_simple
        "removes a part; as a value, the object or list without it, which stays as it is";
    "do" "(do …)" Last lower_do "";
    "each" "(each $x ARR …)" Nothing lower_each
        "runs the body for each item, or each character of a string; `(each $i $x ARR …)` with the \
         index, `(each $k $v MAP …)` for each key";
    "fail" "(fail CODE \"why\")" Never lower_fail
        "ends the program with that error code and reason, which may be formatted as in `out`";
    "filter" "(filter X F)" Value lower_search "a list of the items for which F is true";
    "find" "(find X F)" Value lower_search "the first item for which F is true, or null";
    "first" "(first X)" Value lower_simple "the first item; `(last X)` is the last one";
    "flat" "(flat X)" Value lower_simple "";
    "float" "(float X)" Value lower_number "the float that a string is, or that a number becomes";
    "floats" "(floats N)" Value lower_numbers "like `ints`, for floats";
    "fmt" "(fmt \"{} {.2} {e}\" A X $e)" Value lower_fmt
        "formats a string: `{}` is any value, `{.2}` a number with 2 digits, `{02}`, `{>8}`, `{<8}`, \
         `{,.2}` and `{.1%}` have a width, commas or percent, `{hex}` hexadecimal, `{e}` the name of \
         an error code, `{{` a brace";
    "for" "(for $i FROM TO STEP …)" Nothing lower_for
        "runs the body with `$i` from FROM up to TO, TO excluded; STEP may be left out";
    "get" "(get X K D)" Value lower_get "";
    "group" "(group X by K)" Value lower_items "an object with the list of the items for each key";
    "group_by" "(group_by X K)" Value lower_items "";
    "has" "(has X V)" Value lower_collection
        "true if an array has the item, a map the key, or a string the substring";
    "html.table" "(html.table S N)" Value lower_simple "";
    "index" "(index X by K)" Value lower_items "an object with the item for each key";
    "int" "(int X)" Value lower_number
        "the int that a string is; of a float, the digits before its point";
    "ints" "(ints N)" Value lower_numbers "an array of N ints, all 0; `(ints [1 2 3])` of these";
    "join" "(join X sep)" Value lower_simple "the items as one text";
    "json" "(json S)" Value lower_json "the value that a JSON text contains";
    "json.parse" "(json.parse S)" Value lower_json "";
    "json.stringify" "(json.stringify V)" Value lower_simple "";
    "json.text" "(json.text V [indent])" Value lower_simple "";
    "keep" "(keep $x)" Nothing lower_keep
        "keeps the value of `$x` for the run's later programs, which read it as `$x`; `(keep $x V)` \
         sets it first";
    "keys" "(keys V)" Value lower_simple "a list of the keys; `(values V)` of the values";
    "kind" "(kind V)" Value lower_simple
        "\"null\", \"bool\", \"number\", \"string\", \"list\" or \"object\"";
    "last" "(last X)" Value lower_simple "";
    "len" "(len X)" Value lower_collection "the length of a string in bytes, or of an array or map";
    "let" "(let $x V)" Nothing lower_let
        "declares `$x` and sets it; `(let $x long V)` with a type; `(let $x V $y W)` several, in \
         order; `(let ($a $b) ARR)` takes an array apart";
    "list" "(list A B …)" Value lower_list "a list of these values";
    "long" "(long X)" Value lower_number "like `int`, for a long";
    "longs" "(longs N)" Value lower_numbers "like `ints`, for longs";
    "map" "(map K V …)" Value lower_map "a new map with these keys and values";
    "match" "(match S r\"(a)(b)\" ($a $b) … (else …))" Arms lower_match
        "runs the body with the groups of the first match; `else` may be left out";
    "max" "(max A B …)" Value lower_extreme "the greatest of some numbers";
    "median" "(median X by K)" Value lower_items "";
    "merge" "(merge A B)" Value lower_simple
        "the object A, changed by B; objects in them are merged, too";
    "min" "(min A B …)" Value lower_extreme "the least of some numbers";
    "not" "(not A)" Value lower_not "1 if A is 0, else 0";
    "num" "(num S)" Value lower_simple "the exact number that a text is, as for money";
    "obj" "(obj \"k\" V …)" Value lower_obj "an object with these keys and values";
    "or" "(or A B …)" Value lower_logic
        "1 if any is true, else 0; stops at the first that is not 0";
    "out" "(out V)" Nothing lower_out
        "outputs a result and a line end; `(out \"{} {}\" A B)` formats it as `fmt` does";
    "percentile" "(percentile X P by K)" Value lower_items "";
    "pop" "(pop X)" Value lower_collection "removes the last item of an array and returns it";
    "pow" "(pow A B)" Value lower_simple "A to the power of B";
    "print" "(print V)" Nothing lower_out "";
    "push" "(push X V)" Nothing lower_collection "adds an item to the end of an array";
    "put" "(put X I V)" Nothing lower_collection
        "sets an item of an array, a key of a map, or an element of a number array";
    "repeat" "(repeat N …)" Nothing lower_repeat "";
    "resv" "(resv $p)" Nothing lower_out "";
    "ret" "(ret V)" Never lower_ret
        "outputs a result as `out` does and ends the program; `(ret)` only ends it";
    "retry" "(retry N MS FORM)" Last lower_retry
        "repeats what fails with EREMOTE or ETIME, up to N times with MS milliseconds between";
    "reverse" "(reverse X)" Value lower_simple "a reversed list";
    "round" "(round X [N])" Value lower_simple "the number, rounded to N digits";
    "set" "(set $x V)" Nothing lower_set
        "sets a variable; `(set $x V $y W)` sets several, in order";
    "slice" "(slice X A [B])" Value lower_simple "a list of the items from A up to B, B excluded";
    "sort" "(sort X by K)" Value lower_items "a sorted list; `(sort X desc by K)` descends";
    "sort_by" "(sort_by X K)" Value lower_items "";
    "stdev" "(stdev X by K)" Value lower_items "";
    "str" "(str A B …)" Value lower_str
        "joins values to one string; a single value is a string itself, or becomes JSON";
    "sum" "(sum X by K)" Value lower_items "the exact sum";
    "take" "(take X N)" Value lower_simple "a list of the first N items";
    "toml" "(toml S)" Value lower_simple "";
    "uniq" "(uniq X by K)" Value lower_items "a list without repeated items";
    "unless" "(unless C …)" Nothing lower_when "runs the body if C is false";
    "until" "(until C …)" Nothing lower_while "";
    "values" "(values V)" Value lower_simple "";
    "when" "(when C …)" Nothing lower_when "runs the body if C is true";
    "while" "(while C …)" Nothing lower_while "repeats the body while C is true";
    "xml" "(xml S)" Value lower_simple "the value of an XML text: `{tag, attrs, children, text}`";
    "yaml" "(yaml S)" Value lower_simple "the value of a YAML text; `toml` is used alike";
    "|" "(| A B …)" Value lower_bits "bitwise or of integers";
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::FORMS.is_sorted_by(|a, b| a.name < b.name));
    }
}
