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
}

pub(crate) fn empty_form() -> Message {
    message("empty-form", "`()` is empty").hint("remove it").replace_with("")
}

pub(crate) fn unknown_instruction(
    name: &str,
    near: &[String],
    functions: Option<String>,
    code: Option<Code>,
) -> Message {
    let found =
        message("unknown-instruction", format!("`{}` is not an instruction", excerpt(name)));
    if !near.is_empty() {
        return found.hint(format!("nearest: {}", quoted(near)));
    }
    match (name, code) {
        (_, Some(code)) => found.hint(format!("write its number: `(i32.const {})`", code.number())),
        ("true", _) => found.hint("write `(i32.const 1)`"),
        ("false" | "null" | "nil", _) => found.hint("write `(i32.const 0)`"),
        ("param" | "result" | "type" | "export", _) => found.hint(format!(
            "write `({name} …)` at the start of a function, before its instructions"
        )),
        ("module" | "import" | "memory" | "global" | "table" | "elem" | "data", _) => {
            found.hint(format!("write `({name} …)` at the top level, not inside a form"))
        }
        (name, _) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            found.hint("write text that is not code as a comment: `;; …`")
        }
        (name, _) if functions.is_none() && is_program_name(name) => {
            let name = excerpt(name);
            found.hint(format!(
                "a catalog program is run by `(call \"{name}\" …)`, a function of this program by \
                 `(${name} …)`"
            ))
        }
        _ => found.maybe_hint(functions),
    }
}

/// Returns true if a name is written like the name of a catalog program, such as `text_count`.
fn is_program_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.contains('_') && name.chars().all(is_part)
}

pub(crate) fn call_missing(name: &str, known: &Signature) -> Message {
    let operands = if known.params.is_empty() { "" } else { " …" };
    message("call-missing", format!("`{}` is a function, not an instruction", excerpt(name)))
        .hint(format!("write `(call ${}.{}{operands})`: `${known}`", known.module, known.name))
}

pub(crate) fn bad_number(
    name: &str,
    ty: Val,
    found: &str,
    local: bool,
    code: Option<i32>,
) -> Message {
    let text = format!("`{name}` takes a number that is {}, found `{found}`", with_article(ty));
    let message = message("bad-number", text);
    match (found, code) {
        (_, Some(code)) => message.hint(format!("write `({name} {code})`")),
        _ if local => {
            message.hint(format!("write `(local.get {found})` without the constant around it"))
        }
        ("true", _) => message.hint("write 1"),
        ("false" | "null", _) => message.hint("write 0"),
        (found, _) if found.starts_with('(') => {
            message.hint("write the expression without the constant around it")
        }
        (found, _) if matches!(ty, Val::I32 | Val::I64) && found.contains('.') => {
            message.hint("write it as `(f64.const …)`")
        }
        (found, _) if ty == Val::I32 && found.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            message.hint("it does not fit in 32 bits: write it as `(i64.const …)`")
        }
        _ => message,
    }
}

pub(crate) fn unknown_local(name: &str, near: &[&str], global: bool) -> Message {
    let found = message("unknown-local", format!("no local `{}`", excerpt(name)));
    if global {
        return found.hint(format!("`{name}` is a global: use `global.get` and `global.set`"));
    }
    if !name.starts_with('$') {
        return found.hint("the name of a local begins with `$`");
    }
    let declare = format!("declare it with `(local {} i32)`", excerpt(name));
    if near.is_empty() {
        found.hint(declare)
    } else {
        found.hint(format!("nearest: {}; or {declare}", quoted(near)))
    }
}

pub(crate) fn unknown_global(name: &str, near: &[&str], local: bool) -> Message {
    let found = message("unknown-global", format!("no global `{}`", excerpt(name)));
    if local {
        return found.hint(format!("`{name}` is a local: use `local.get` and `local.set`"));
    }
    match near {
        [] => found.hint(format!(
            "declare it at the top level: `(global {} (mut i32) (i32.const 0))`",
            excerpt(name)
        )),
        near => found.hint(format!("nearest: {}", quoted(near))),
    }
}

/// Reports an unknown label. `around` contains the labels of the enclosing blocks and loops.
pub(crate) fn unknown_label(name: &str, around: &[&str]) -> Message {
    let found = message("unknown-label", format!("no enclosing block or loop `{}`", excerpt(name)));
    match around {
        [] => {
            found.hint("label the block or loop to branch to: `(block $done …)`, `(loop $next …)`")
        }
        around => found.hint(format!("enclosing labels: {}", quoted(around))),
    }
}

pub(crate) fn stray_end(name: &str) -> Message {
    let hint = match name {
        "else" => "write `else` between a flat `if` and its `end`, and `(else …)` after `(then …)`",
        _ => "a form in parentheses ends with its `)`",
    };
    let message = message("block-end", format!("unmatched `{name}`")).hint(hint);
    if name == "end" { message.replace_with("") } else { message }
}

pub(crate) fn arm_outside(name: &str) -> Message {
    let hint = match name {
        "else" => "write `(if COND (then …) (else …))`: the `if` before it may be closed too early",
        _ => "write `(if COND (then …) (else …))`",
    };
    message("if-form", format!("`{name}` is outside an `if`")).hint(hint)
}

messages! {
    value_left(from: &str, ty: Val) "value-left"
        "`{from}` leaves {ty} on the stack" => "use the value, or drop it"
        where ty = with_article(ty);
}

pub(crate) fn operand_count(
    usage: &str,
    wanted: usize,
    found: usize,
    called: Option<&Signature>,
) -> Message {
    let message = message(
        "operand-count",
        format!("`{usage}` takes {}, found {found}", counted(wanted, "operand")),
    );
    let missing = called.map_or(&[][..], |called| called.params.get(found..).unwrap_or(&[]));
    let none = |param: &Param| {
        param.ty.missing().map(|none| format!("{} may be `(i32.const {none})`", param.name))
    };
    let optional: Option<Vec<String>> = missing.iter().map(none).collect();
    message.maybe_hint(optional.filter(|all| !all.is_empty()).map(|all| all.join(", ")))
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
    let names = called.results.iter().map(|p| p.name).chain(called.fallible().then_some("err"));
    let pops: Vec<String> = names.rev().map(|name| format!("(local.set ${name})")).collect();
    let count = pops.len();
    let pops = pops.join(" ");
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

pub(crate) fn value_missing(
    usage: &str,
    wanted: usize,
    found: usize,
    name: &str,
    argument: Option<&str>,
) -> Message {
    let stack = match found {
        0 => "the stack is empty".to_owned(),
        n => format!("the stack holds {}", counted(n, "value")),
    };
    let message = message(
        "value-missing",
        format!("`{usage}` takes {}, but {stack}", counted(wanted, "operand")),
    );
    let argument = argument.map(|argument| format!(" {argument}")).unwrap_or_default();
    match name {
        "if" => message.hint("write `(if COND (then …) (else …))`"),
        "return" => message.hint("write `(return (i32.const 0))`"),
        _ => message.hint(format!("write `({name}{argument}{})`", " (…)".repeat(wanted.min(6)))),
    }
}

pub(crate) fn operand_type(
    usage: &str,
    nth: usize,
    param: Option<&str>,
    wanted: Val,
    found: Val,
    from: &str,
    conversion: Option<&str>,
) -> Message {
    let which = match param {
        Some(param) => format!("operand {} ({param})", nth + 1),
        None => format!("operand {}", nth + 1),
    };
    let text = format!(
        "{which} of `{usage}` must be {}, found {} from `{from}`",
        with_article(wanted),
        with_article(found)
    );
    message("operand-type", text).maybe_hint(conversion.map(converting))
}

pub(crate) fn err_as_operand(usage: &str, nth: usize, wanted: Val, called: &Signature) -> Message {
    let text = format!(
        "operand {} of `{usage}` must be {}, found err, an i32",
        nth + 1,
        with_article(wanted)
    );
    message("operand-type", text).hint(pop_before(called))
}

pub(crate) fn wrong_set(
    name: &str,
    wanted: Val,
    found: Val,
    from: &str,
    conversion: Option<&str>,
) -> Message {
    let text = format!(
        "`{name}` is {}, found {} from `{from}`",
        with_article(wanted),
        with_article(found)
    );
    message("operand-type", text).maybe_hint(conversion.map(|conversion| {
        format!("convert it with `({conversion} …)`, or declare `{name}` as {}", found.name())
    }))
}

pub(crate) fn err_on_top(name: &str, wanted: Val, signature: &Signature) -> Message {
    let text =
        format!("`{name}` is {}, but err, an i32, is on top of the stack", with_article(wanted));
    message("operand-type", text).hint(format!(
        "`${signature}` pushes err last, so pop it first: `(local.set $err) (local.set {name})`"
    ))
}

pub(crate) fn result_left(signature: &Signature, nth: usize, count: usize) -> Message {
    let names: Vec<&str> = signature
        .results
        .iter()
        .map(|p| p.name)
        .chain(signature.fallible().then_some("err"))
        .collect();
    let left: Vec<&str> = names.iter().copied().skip(nth).take(count).collect();
    let text = format!("`${signature}` leaves {} on the stack", left.join(" and "));
    let call = format!("(call ${}.{} …)", signature.module, signature.name);
    let pops: Vec<String> = names.iter().rev().map(|name| format!("(local.set ${name})")).collect();
    message("value-left", text).hint(match (names.len(), left.len()) {
        (1, _) if signature.fallible() => format!("end the program if it fails: `(check {call})`"),
        (1, _) => format!("use the value, or `(drop {call})`"),
        (2, _) => format!(
            "write `({}.{} …)`, or pop both, err first: `{}`",
            signature.module,
            signature.name,
            pops.join(" ")
        ),
        _ => format!("pop all results, the last one first: `{}`", pops.join(" ")),
    })
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

pub(crate) fn call_left(signature: &Signature) -> Message {
    let (module, name) = (signature.module, signature.name);
    let (results, catch) = match signature.results {
        [] => ("err, but nothing uses it", "$e"),
        _ => ("a value and err, but nothing uses them", "$v $e"),
    };
    message("value-left", format!("`({module}.{name} …)` returns {results}")).hint(format!(
        "write `({module}.{name} …)` to end the program if it fails, or `(catch {catch} \
         ({module}.{name} …))`"
    ))
}

/// Reports a function, block or arm that ends without its results. `what` is its description, such
/// as `the block`.
pub(crate) fn missing_frame_result(what: &str, wanted: &[Val], found: &[Val]) -> Message {
    let found = if found.is_empty() { "nothing".to_owned() } else { list_types(found) };
    message(
        "value-missing",
        format!("{what} must leave {}, but leaves {found}", list_types(wanted)),
    )
    .hint("put the result last")
}

/// Reports a function, block or arm whose result has the type `found` instead of `wanted`. `what`
/// is its description, such as `the block`.
pub(crate) fn wrong_result(
    what: &str,
    wanted: Val,
    found: Val,
    from: &str,
    run: bool,
    conversion: Option<&str>,
) -> Message {
    let text = format!(
        "{what} must leave {}, found {} from `{from}`",
        with_article(wanted),
        with_article(found)
    );
    let message = message("wrong-result", text);
    if run {
        return message
            .hint("end the program with a code, `(i32.const 0)`; output results with `(resv $p)`");
    }
    message.maybe_hint(conversion.map(converting))
}

/// Wraps a message from the WAT parser or the validator.
pub(crate) fn invalid(text: &str) -> Message {
    message("invalid", text.lines().next().unwrap_or("").trim())
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
