//! Messages about WAT instructions, the names and numbers in them, and their operands and results.

use crate::diagnose::fix::Change;
use crate::diagnose::truncate::excerpt;
use crate::diagnose::wording::{Message, counted, message, quoted, with_article};
use crate::types::{Val, list_types};
use crate::{Code, Param, Signature};

messages! {
    headless_form() "headless-form"
        "a form must begin with an instruction"
        => "remove the outer parentheses: forms are written one after another";
    foreign_head(name: &str) "unknown-instruction"
        "`{name}` is not an instruction" where name = excerpt(name);
    letter_before_text() "call-form"
        "a string cannot have a letter before it" => "write `(fmt \"{{}}\" $value)`";
    call_syntax(name: &str) "call-form"
        "the parenthesis of a call goes before the function's name" => "write `({name} …)`";
    flat_form(name: &str, usage: &str) "unknown-instruction"
        "`{name}` needs parentheses" => "write `{usage}`";
    helper_call_missing(name: &str) "call-missing"
        "`{name}` is a function, not an instruction" => "write `(call {name} …)`"
        where name = excerpt(name);
    bare_operand(text: &str, written: &str) "bare-operand"
        "`{text}` is not an instruction" => "write `{written}`" where text = excerpt(text);
    missing_argument(name: &str, what: &str, usage: &str) "missing-argument"
        "`{name}` needs {what}" => "write `{usage}`";
    local_number(number: &str, count: usize) "unknown-local"
        "no local {number}: the function has {count}"
        => "name the locals, as in `(local $x i32)`, and use the names"
        where number = excerpt(number);
    constant_global(name: &str, ty: Val) "constant-global"
        "the global `{name}` is immutable" => "declare it as `(global {name} (mut {ty}) …)`"
        where ty = ty.name();
    missing_end(name: &str) "block-end"
        "`{name}` has no `end`" => "write `end` where it ends, or put it in parentheses"
        where name = excerpt(name);
    missing_then() "if-form"
        "`if` needs `(then …)`" => "write `(if COND (then …) (else …))`";
    second_then() "if-form"
        "`if` has a second `(then …)`" => "write `(else …)` for the other arm";
    after_then() "if-form"
        "only `(else …)` may follow `(then …)`"
        => "put all instructions of the arm into the one `(then …)`, and close the `if` after its \
            last arm";
    after_else() "if-form"
        "nothing may follow `(else …)`" => "close the `if` after its last arm";
    if_without_else(results: &str) "if-form"
        "an `if` with the result {results} needs `(else …)`" => "both arms must leave the result";
    empty_form() "empty-form" "`()` is empty" => "remove it" fix replace_with("");
    unknown_instruction(name: &str, near: &[&str], functions: Option<String>, code: Option<Code>)
        "unknown-instruction"
        "`{shown}` is not an instruction"
        => match (name, code, functions) {
            _ if !near.is_empty() => "nearest: {names}",
            (_, Some(Code(number)), _) => "write its number: `(i32.const {number})`",
            ("true", ..) => "write `(i32.const 1)`",
            ("false" | "null" | "nil", ..) => "write `(i32.const 0)`",
            ("param" | "result" | "type" | "export", ..) =>
                "write `({name} …)` at the start of a function, before its instructions",
            ("module" | "import" | "memory" | "global" | "table" | "elem" | "data", ..) =>
                "write `({name} …)` at the top level, not inside a form",
            _ if name.starts_with(|c: char| c.is_ascii_uppercase()) =>
                "write text that is not code as a comment: `;; …`",
            (.., Some(functions)) => "{functions}",
            _ if is_program_name(name) =>
                "a catalog program is run by `(call \"{shown}\" …)`, a function of this program by \
                 `(${shown} …)`",
            _ => none,
        } where shown = excerpt(name), names = quoted(near);
    call_missing(name: &str, known: &Signature) "call-missing"
        "`{name}` is a function, not an instruction"
        => "write `(call ${module}.{function}{operands})`: `${known}`"
        where name = excerpt(name), module = known.module, function = known.name,
        operands = if known.params.is_empty() { "" } else { " …" };
    bad_number(name: &str, ty: Val, found: &str, local: bool, code: Option<i32>) "bad-number"
        "`{name}` takes a number that is {wanted}, found `{found}`"
        => match (found, code) {
            (_, Some(code)) => "write `({name} {code})`",
            _ if local => "write `(local.get {found})` without the constant around it",
            ("true", _) => "write 1",
            ("false" | "null", _) => "write 0",
            _ if found.starts_with('(') => "write the expression without the constant around it",
            _ if matches!(ty, Val::I32 | Val::I64) && found.contains('.') =>
                "write it as `(f64.const …)`",
            _ if ty == Val::I32 && found.bytes().all(|b| b.is_ascii_digit() || b == b'-') =>
                "it does not fit in 32 bits: write it as `(i64.const …)`",
            _ => none,
        } where wanted = with_article(ty);
    unknown_local(name: &str, near: &[&str], global: bool) "unknown-local"
        "no local `{shown}`"
        => match (near) {
            _ if global => "`{name}` is a global: use `global.get` and `global.set`",
            _ if !name.starts_with('$') => "the name of a local begins with `$`",
            [] => "declare it with `(local {shown} i32)`",
            _ => "nearest: {names}; or declare it with `(local {shown} i32)`",
        } where shown = excerpt(name), names = quoted(near);
    unknown_global(name: &str, near: &[&str], local: bool) "unknown-global"
        "no global `{shown}`"
        => match (near) {
            _ if local => "`{name}` is a local: use `local.get` and `local.set`",
            [] => "declare it at the top level: `(global {shown} (mut i32) (i32.const 0))`",
            _ => "nearest: {names}",
        } where shown = excerpt(name), names = quoted(near);
    /// Reports an unknown label. `around` contains the labels of the enclosing blocks and loops.
    unknown_label(name: &str, around: &[&str]) "unknown-label"
        "no enclosing block or loop `{name}`"
        => match (around) {
            [] => "label the block or loop to branch to: `(block $done …)`, `(loop $next …)`",
            _ => "enclosing labels: {labels}",
        } where name = excerpt(name), labels = quoted(around);
    stray_end(name: &str) "block-end"
        "unmatched `{name}`"
        => match (name) {
            "else" =>
                "write `else` between a flat `if` and its `end`, and `(else …)` after `(then …)`",
            "end" => "a form in parentheses ends with its `)`" fix replace_with(""),
            _ => "a form in parentheses ends with its `)`",
        };
    arm_outside(name: &str) "if-form"
        "`{name}` is outside an `if`"
        => match (name) {
            "else" =>
                "write `(if COND (then …) (else …))`: the `if` before it may be closed too early",
            _ => "write `(if COND (then …) (else …))`",
        };
    value_left(from: &str, ty: Val) "value-left"
        "`{from}` leaves {ty} on the stack" => "use the value, or drop it"
        where ty = with_article(ty);
    operand_count(usage: &str, wanted: usize, found: usize, called: Option<&Signature>)
        "operand-count"
        "`{usage}` takes {wanted}, found {found}"
        fix maybe_hint(optional_operands(called.map_or(&[], |called| called.params), found))
        where wanted = counted(wanted, "operand");
    value_missing(usage: &str, wanted: usize, found: usize, name: &str, argument: Option<&str>)
        "value-missing"
        "`{usage}` takes {operands}, but {stack}"
        => match (name) {
            "if" => "write `(if COND (then …) (else …))`",
            "return" => "write `(return (i32.const 0))`",
            _ => "write `({name}{argument}{forms})`",
        } where operands = counted(wanted, "operand"),
        stack = match found {
            0 => "the stack is empty".to_owned(),
            n => format!("the stack holds {}", counted(n, "value")),
        },
        argument = argument.map(|argument| format!(" {argument}")).unwrap_or_default(),
        forms = " (…)".repeat(wanted.min(6));
    operand_type(usage: &str, nth: usize, param: Option<&str>, wanted: Val, found: Val, from: &str,
        conversion: Option<&str>) "operand-type"
        "operand {number}{param} of `{usage}` must be {wanted}, found {found} from `{from}`"
        fix maybe_hint(conversion.map(converting))
        where number = nth + 1, param = param.map_or(String::new(), |param| format!(" ({param})")),
        wanted = with_article(wanted), found = with_article(found);
    err_as_operand(usage: &str, nth: usize, wanted: Val, called: &Signature) "operand-type"
        "operand {number} of `{usage}` must be {wanted}, found err, an i32"
        fix hint(pop_before(called))
        where number = nth + 1, wanted = with_article(wanted);
    wrong_set(name: &str, wanted: Val, found: Val, from: &str, conversion: Option<&str>)
        "operand-type"
        "`{name}` is {wanted}, found {article} from `{from}`"
        => match (conversion) {
            Some(by) => "convert it with `({by} …)`, or declare `{name}` as {found}",
            None => none,
        } where wanted = with_article(wanted), article = with_article(found), found = found.name();
    err_on_top(name: &str, wanted: Val, signature: &Signature) "operand-type"
        "`{name}` is {wanted}, but err, an i32, is on top of the stack"
        => "`${signature}` pushes err last, so pop it first: `(local.set $err) (local.set {name})`"
        where wanted = with_article(wanted);
    /// Reports results of a call that nothing uses: `count` of them, from the result `nth` on.
    result_left(signature: &Signature, nth: usize, count: usize) "value-left"
        "`${signature}` leaves {left} on the stack"
        => match (results.len()) {
            1 if signature.fallible() => "end the program if it fails: `(check {call})`",
            1 => "use the value, or `(drop {call})`",
            2 => "write `({module}.{name} …)`, or pop both, err first: `{pops}`",
            _ => "pop all results, the last one first: `{pops}`",
        } where module = signature.module, name = signature.name,
        call = format!("(call ${module}.{name} …)"), results = results(signature),
        pops = pops(&results),
        left = results.iter().copied().skip(nth).take(count).collect::<Vec<_>>().join(" and ");
    call_left(signature: &Signature) "value-left"
        "`({module}.{name} …)` returns {results}"
        => "write `({module}.{name} …)` to end the program if it fails, or `(catch {catch} \
            ({module}.{name} …))`"
        where module = signature.module, name = signature.name,
        results = match signature.results {
            [] => "err, but nothing uses it",
            _ => "a value and err, but nothing uses them",
        },
        catch = if signature.results.is_empty() { "$e" } else { "$v $e" };
    /// Reports a function, block or arm that ends without its results. `what` is its description,
    /// such as `the block`.
    missing_frame_result(what: &str, wanted: &[Val], found: &[Val]) "value-missing"
        "{what} must leave {wanted}, but leaves {found}" => "put the result last"
        where wanted = list_types(wanted),
        found = if found.is_empty() { "nothing".to_owned() } else { list_types(found) };
    /// Reports a function, block or arm whose result has the type `found` instead of `wanted`.
    /// `what` is its description, such as `the block`.
    wrong_result(what: &str, wanted: Val, found: Val, from: &str, run: bool,
        conversion: Option<&str>) "wrong-result"
        "{what} must leave {wanted}, found {found} from `{from}`"
        => match (conversion.map(converting)) {
            _ if run => "end the program with a code, `(i32.const 0)`; output results with `(resv $p)`",
            Some(hint) => "{hint}",
            None => none,
        } where wanted = with_article(wanted), found = with_article(found);
    /// Wraps a message from the WAT parser or the validator.
    invalid(text: &str) "invalid" "{line}" where line = text.lines().next().unwrap_or("").trim();
}

/// Returns a hint with the operands of a call that may be missing, if all those from the index
/// `found` on are optional.
fn optional_operands(params: &[Param], found: usize) -> Option<String> {
    let none = |param: &Param| {
        param.ty.missing().map(|none| format!("{} may be `(i32.const {none})`", param.name))
    };
    let optional: Option<Vec<String>> = params.iter().skip(found).map(none).collect();
    optional.filter(|all| !all.is_empty()).map(|all| all.join(", "))
}

/// Returns the names of all results of a call, including `err`.
fn results(called: &Signature) -> Vec<&'static str> {
    let err = called.fallible().then_some("err");
    called.results.iter().map(|result| result.name).chain(err).collect()
}

/// Returns the instructions that pop results into locals with the same names.
fn pops(results: &[&str]) -> String {
    let pop = |name: &&str| format!("(local.set ${name})");
    results.iter().rev().map(pop).collect::<Vec<_>>().join(" ")
}

/// Returns true if a name is written like the name of a catalog program, such as `text_count`.
fn is_program_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.contains('_') && name.chars().all(is_part)
}

pub(crate) fn results_as_operand(
    usage: &str,
    wanted: usize,
    found: usize,
    called: &Signature,
) -> Message {
    operand_count(usage, wanted, found, None).hint(pop_before(called))
}

fn pop_before(called: &Signature) -> String {
    let names = results(called);
    let count = names.len();
    let pops = pops(&names);
    match called.results {
        [_] => format!(
            "`${called}` returns {count} values: write `({}.{} …)`, or pop both before this, err \
             first: `{pops}`",
            called.module, called.name
        ),
        _ => format!(
            "`${called}` returns {count} values: call it before this and pop them, the last one \
             first: `{pops}`"
        ),
    }
}

/// Returns the change that consumes the only result of a call: `check` for an `err`, `drop` for a
/// value. Returns `None` unless the call has exactly one result.
pub(crate) fn consume_result(signature: &Signature) -> Option<Change> {
    match (signature.results.len(), signature.fallible()) {
        (0, true) => Some(Change::wrap("(check ", ")")),
        (1, false) => Some(Change::wrap("(drop ", ")")),
        _ => None,
    }
}

/// Returns a hint that suggests converting a value with the instruction `name`. If the conversion
/// loses information, the hint says what is lost.
fn converting(name: &str) -> String {
    let lost = match name {
        "i32.wrap_i64" => "drops the upper 32 bits",
        "f32.demote_f64" | "f32.convert_i32_s" | "f32.convert_i64_s" | "f64.convert_i64_s" => {
            "rounds"
        }
        _ if name.contains(".trunc") => "drops the fraction",
        _ => return format!("convert it: `({name} …)`"),
    };
    format!("nothing converts it without loss: `{name}` {lost}")
}
