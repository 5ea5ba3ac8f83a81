//! Messages about WAT instructions and the names and numbers in them.

use super::{Message, message, quoted, with_article};
use crate::Code;
use crate::Signature;
use crate::diagnose::truncate::excerpt;
use crate::types::Val;

pub(crate) fn empty_form() -> Message {
    message("empty-form", "`()` is empty").hint("remove it").replace_with("")
}

pub(crate) fn headless_form() -> Message {
    message("headless-form", "a form must begin with an instruction")
        .hint("remove the outer parentheses: forms are written one after another")
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

pub(crate) fn foreign_head(name: &str) -> Message {
    message("unknown-instruction", format!("`{}` is not an instruction", excerpt(name)))
}

pub(crate) fn letter_before_text() -> Message {
    message("call-form", "a string cannot have a letter before it")
        .hint("write `(fmt \"{}\" $value)`")
}

pub(crate) fn call_syntax(name: &str) -> Message {
    message("call-form", "the parenthesis of a call goes before the function's name")
        .hint(format!("write `({name} …)`"))
}

pub(crate) fn flat_form(name: &str, usage: &str) -> Message {
    message("unknown-instruction", format!("`{name}` needs parentheses"))
        .hint(format!("write `{usage}`"))
}

pub(crate) fn call_missing(name: &str, known: &Signature) -> Message {
    let operands = if known.params.is_empty() { "" } else { " …" };
    message("call-missing", format!("`{}` is a function, not an instruction", excerpt(name)))
        .hint(format!("write `(call ${}.{}{operands})`: `${known}`", known.module, known.name))
}

pub(crate) fn helper_call_missing(name: &str) -> Message {
    message("call-missing", format!("`{}` is a function, not an instruction", excerpt(name)))
        .hint(format!("write `(call {name} …)`"))
}

pub(crate) fn bare_operand(text: &str, written: &str) -> Message {
    message("bare-operand", format!("`{}` is not an instruction", excerpt(text)))
        .hint(format!("write `{written}`"))
}

pub(crate) fn missing_argument(name: &str, what: &str, usage: &str) -> Message {
    message("missing-argument", format!("`{name}` needs {what}")).hint(format!("write `{usage}`"))
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

pub(crate) fn local_number(number: &str, count: usize) -> Message {
    message("unknown-local", format!("no local {}: the function has {count}", excerpt(number)))
        .hint("name the locals, as in `(local $x i32)`, and use the names")
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

pub(crate) fn constant_global(name: &str, ty: Val) -> Message {
    message("constant-global", format!("the global `{name}` is immutable"))
        .hint(format!("declare it as `(global {name} (mut {}) …)`", ty.name()))
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

pub(crate) fn missing_end(name: &str) -> Message {
    message("block-end", format!("`{}` has no `end`", excerpt(name)))
        .hint("write `end` where it ends, or put it in parentheses")
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

pub(crate) fn missing_then() -> Message {
    message("if-form", "`if` needs `(then …)`").hint("write `(if COND (then …) (else …))`")
}

pub(crate) fn second_then() -> Message {
    message("if-form", "`if` has a second `(then …)`").hint("write `(else …)` for the other arm")
}

pub(crate) fn after_then() -> Message {
    message("if-form", "only `(else …)` may follow `(then …)`").hint(
        "put all instructions of the arm into the one `(then …)`, and close the `if` after its \
         last arm",
    )
}

pub(crate) fn after_else() -> Message {
    message("if-form", "nothing may follow `(else …)`").hint("close the `if` after its last arm")
}

pub(crate) fn if_without_else(results: &str) -> Message {
    message("if-form", format!("an `if` with the result {results} needs `(else …)`"))
        .hint("both arms must leave the result")
}
