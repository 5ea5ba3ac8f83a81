//! The table of all forms.

use super::{Form, LowerForm, Yields, arithmetic, binding, collection, compare, control, each, failure, numbers, program, text};

/// All forms, sorted by name.
pub(crate) const FORMS: &[Form] = &[
    form("!=", "(!= A B)", "true if two numbers or strings differ", Yields::Value, compare::compare),
    form("%", "(% A B)", "the remainder, with the sign of A", Yields::Value, arithmetic::arithmetic),
    form("&", "(& A B)", "bitwise and of integers", Yields::Value, arithmetic::bits),
    form("*", "(* A B …)", "the product", Yields::Value, arithmetic::arithmetic),
    form("*=", "(*= $x N)", "sets `$x` to its product with N", Yields::Nothing, arithmetic::update),
    form("+", "(+ A B …)", "the sum; traps if it does not fit", Yields::Value, arithmetic::arithmetic),
    form("+=", "(+= $x N)", "adds N to `$x`", Yields::Nothing, arithmetic::update),
    form("-", "(- A B)", "the difference; with one argument, its negative", Yields::Value, arithmetic::arithmetic),
    form("-=", "(-= $x N)", "subtracts N from `$x`", Yields::Nothing, arithmetic::update),
    form("/", "(/ A B)", "the quotient; of two ints, rounded towards 0", Yields::Value, arithmetic::arithmetic),
    form("<", "(< A B)", "true if A is less than B", Yields::Value, compare::compare),
    form("<<", "(<< A N)", "shifts an integer left by N bits", Yields::Value, arithmetic::bits),
    form("<=", "(<= A B)", "true if A is at most B", Yields::Value, compare::compare),
    form("=", "(= A B)", "true if two numbers or strings are equal", Yields::Value, compare::compare),
    form(">", "(> A B)", "true if A is greater than B", Yields::Value, compare::compare),
    form(">=", "(>= A B)", "true if A is at least B", Yields::Value, compare::compare),
    form(">>", "(>> A N)", "shifts an integer right by N bits, keeping its sign", Yields::Value, arithmetic::bits),
    form("^", "(^ A B)", "bitwise exclusive or of integers", Yields::Value, arithmetic::bits),
    form("abs", "(abs X)", "the absolute value of a number", Yields::Value, arithmetic::abs),
    form("and", "(and A B …)", "1 if all are true, else 0; stops at the first that is 0", Yields::Value, compare::logic),
    form("append", "(append $s \"{}\" V …)", "adds formatted text to the end of a string", Yields::Nothing, text::append),
    form("arg", "(arg N)", "argument N, from 0; fails with EBOUND if it is missing", Yields::Value, program::arg),
    form("args", "(args)", "an array of all arguments", Yields::Value, program::args),
    form("argv", "(argv N $p)", "", Yields::Nothing, program::argv),
    form("arr", "(arr A B …)", "a new array of these strings", Yields::Value, collection::array),
    form("at", "(at X I)", "the item of an array, the value of a map's key, or the element of a number array", Yields::Value, collection::at),
    form("break", "(break)", "leaves the innermost loop", Yields::Never, control::leave),
    form("bytes", "(bytes N)", "like `ints`, for numbers from 0 to 255", Yields::Value, numbers::create),
    form("call", "(call \"program\" ARG …)", "runs a catalog program and returns its results, one a line", Yields::Value, program::call),
    form("catch", "(catch $v $e $why CALL)", "sets `$v` to the value, `$e` to the error code (0 if it succeeded) and `$why` to the reason; the last two names may be left out", Yields::Nothing, failure::catch),
    form("check", "(check $err)", "", Yields::Nothing, failure::check),
    form("cond", "(cond (C …) … (else …))", "runs the first clause whose condition is true, and returns its value", Yields::Clauses, control::cond),
    form("continue", "(continue)", "goes on with the next iteration of the innermost loop", Yields::Never, control::next),
    form("default", "(default CALL D)", "the call's value, or D if anything in it fails", Yields::Value, failure::default),
    form("do", "(do …)", "", Yields::Last, control::sequence),
    form("each", "(each $x ARR …)", "runs the body for each item; `(each $i $x ARR …)` with the index, `(each $k $v MAP …)` for each key", Yields::Nothing, each::each),
    form("fail", "(fail CODE \"why\")", "ends the program with that error code and reason", Yields::Never, program::fail),
    form("floats", "(floats N)", "like `ints`, for floats", Yields::Value, numbers::create),
    form("fmt", "(fmt \"{} {.2} {e}\" A X $e)", "formats a string: `{}` is any value, `{.2}` a float with 2 digits, `{e}` the name of an error code, `{{` a brace", Yields::Value, text::fmt),
    form("for", "(for $i FROM TO STEP …)", "runs the body with `$i` from FROM up to TO, TO excluded; STEP may be left out", Yields::Nothing, control::count),
    form("has", "(has X V)", "true if an array has the item, a map the key, or a string the substring", Yields::Value, collection::has),
    form("ints", "(ints N)", "an array of N ints, all 0; `(ints [1 2 3])` of these", Yields::Value, numbers::create),
    form("len", "(len X)", "the length of a string in bytes, or of an array or map", Yields::Value, collection::len),
    form("let", "(let $x V)", "declares `$x` and sets it; `(let $x long V)` with a type; `(let ($a $b) ARR)` takes an array apart", Yields::Nothing, binding::declare),
    form("longs", "(longs N)", "like `ints`, for longs", Yields::Value, numbers::create),
    form("map", "(map K V …)", "a new map with these keys and values", Yields::Value, collection::map),
    form("match", "(match S r\"(a)(b)\" ($a $b) … (else …))", "runs the body with the groups of the first match; `else` may be left out", Yields::Arms, control::matches),
    form("max", "(max A B …)", "the greatest of some numbers", Yields::Value, arithmetic::extreme),
    form("min", "(min A B …)", "the least of some numbers", Yields::Value, arithmetic::extreme),
    form("not", "(not A)", "1 if A is 0, else 0", Yields::Value, compare::not),
    form("or", "(or A B …)", "1 if any is true, else 0; stops at the first that is not 0", Yields::Value, compare::logic),
    form("out", "(out V)", "outputs a result and a line end", Yields::Nothing, program::out),
    form("pop", "(pop X)", "removes the last item of an array and returns it", Yields::Value, collection::pop),
    form("print", "(print V)", "", Yields::Nothing, program::out),
    form("push", "(push X V)", "adds an item to the end of an array", Yields::Nothing, collection::push),
    form("put", "(put X I V)", "sets an item of an array, a key of a map, or an element of a number array", Yields::Nothing, collection::put),
    form("repeat", "(repeat N …)", "", Yields::Nothing, control::times),
    form("resv", "(resv $p)", "", Yields::Nothing, program::out),
    form("ret", "(ret V)", "outputs a result and ends the program; `(ret)` only ends it", Yields::Never, program::ret),
    form("retry", "(retry N MS FORM)", "repeats what fails with EREMOTE or ETIME, up to N times with MS milliseconds between", Yields::Last, failure::retry),
    form("set", "(set $x V)", "sets a variable", Yields::Nothing, binding::set),
    form("unless", "(unless C …)", "", Yields::Nothing, control::when),
    form("until", "(until C …)", "", Yields::Nothing, control::repeat),
    form("when", "(when C …)", "runs the body if C is true", Yields::Nothing, control::when),
    form("while", "(while C …)", "repeats the body while C is true", Yields::Nothing, control::repeat),
    form("|", "(| A B)", "bitwise or of integers", Yields::Value, arithmetic::bits),
]; 

const fn form(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    yields: Yields,
    lower: LowerForm,
) -> Form {
    Form { name, usage, about, yields, lower }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::FORMS.is_sorted_by(|a, b| a.name < b.name));
    }
}
