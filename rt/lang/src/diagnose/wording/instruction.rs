//! Messages about WAT instructions and the names and numbers in them.

use super::{Message, message, quoted, with_article};
use crate::Code;
use crate::Signature;
use crate::diagnose::truncate::excerpt;
use crate::types::Val;

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
