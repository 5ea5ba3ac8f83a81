//! Messages about operands and results that do not match the values on the stack.

use super::{Message, counted, message, with_article};
use crate::diagnose::fix::Change;
use crate::types::{Val, list_types};
use crate::{Param, Signature};

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
    let (count, pops) = (pops.len(), pops.join(" "));
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

/// Reports a function, block or arm whose result has the type `found` instead of `wanted`. `what` is its
/// description, such as `the block`.
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
