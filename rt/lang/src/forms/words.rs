//! What is said about forms.

use super::super::fix::Change;
use super::super::nearest;
use super::super::ops::{Val, conversion};
use super::super::wording::{Words, meant_type, quoted, short, with_article, words};
use crate::{Signature, truncate};

/// Whether a text is a name but for its `$`.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A piece of the author's text as it is shown: on one line, and not too long.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&line, 48).into_owned()
}

pub(crate) fn value_needs_else(head: &str) -> Words {
    words("form-value", format!("`{head}` gives a value here, so it needs a last `(else …)`"))
        .hint("add `(else V)`, or put what depends on it into its arms")
}

pub(crate) fn operand_type(head: &str, text: &str, want: Val, found: Val, by: Option<&str>) -> Words {
    let text = excerpt(text);
    let said = words(
        "operand-type",
        format!("`{text}` is {} where `{head}` takes {}", with_article(found), with_article(want)),
    );
    match by {
        Some(by) => said.hint(format!("convert it: `({by} {text})`")).converted(want, found, by),
        None => said,
    }
}

pub(super) fn condition_type(text: &str, found: Val) -> Words {
    let text = excerpt(text);
    words("operand-type", format!("`{text}` is {} where a condition, an i32, is taken", with_article(found)))
        .hint(format!("compare it: `(!= {text} 0)`"))
        .safe(Change::around("(!= ", " 0)"))
}

pub(super) fn number_type(text: &str, want: Val, own: Val) -> Words {
    let said = words("bad-number", format!("`{}` is not {}", short(text), with_article(want)));
    match (want, own) {
        (Val::I32 | Val::I64, Val::F64) => match conversion(want, Val::F64) {
            Some(by) => {
                said.hint(format!("a whole number is needed here; or make the other side an f64 with `({by} …)`"))
            }
            None => said,
        },
        (Val::I32, Val::I64) => said.hint(
            "it does not fit 32 bits: make the value an i64, as in `(let $x i64 …)`, or with `(i64.extend_i32_s …)`",
        ),
        _ => said,
    }
}

pub(super) fn function_as_value(name: &str) -> Words {
    words("call-missing", format!("`{}` is a function, not a value", short(name)))
        .hint(format!("call it: `({name} …)`"))
}

pub(super) fn helper_as_value(name: &str) -> Words {
    words("call-missing", format!("`{}` is a function, not a value", short(name)))
        .hint(format!("call it: `({name} …)`"))
}

pub(super) fn unknown_local<'n>(name: &str, known: impl Iterator<Item = &'n str>, later: Option<u32>) -> Words {
    let said = words("unknown-local", format!("no local `{}`", short(name)));
    if let Some(line) = later {
        return said.hint(format!("line {line} declares it, after this: set it before, as in `(let {name} 0)`"));
    }
    let known: Vec<&str> = known.collect();
    let certain = nearest::certain(name, known.iter().copied()).map(|near| Change::Instead(near.to_owned()));
    let near = nearest::names(name, known.iter().copied());
    let declare = format!("declare it with `(let {} …)`", short(name));
    match near.is_empty() {
        true => said.hint(declare),
        false => said.hint(format!("nearest: {}; or {declare}", quoted(&near))).perhaps(certain),
    }
}

pub(super) fn not_a_value(head: &str, usage: &str, text: &str, is_local: bool) -> Words {
    let said = words("form-operands", format!("`{}` is not a value", short(text)));
    match text {
        "true" | "True" | "#t" | "#true" | "t" | "TRUE" => said.hint("write 1").instead("1"),
        "false" | "False" | "#f" | "#false" | "FALSE" | "null" | "NULL" | "nil" | "none" | "None" | "undefined" => {
            said.hint("write 0").instead("0")
        }
        _ if is_local => said.hint(format!("the local's name begins with `$`: `${text}`")).instead(format!("${text}")),
        _ if usage.is_empty() => said.hint(format!("`{head}` takes locals (`$x`), numbers, texts (`\"…\"`) and forms")),
        _ => said.hint(format!("write `{usage}`, with locals (`$x`), numbers, texts (`\"…\"`) or forms")),
    }
}

pub(super) fn value_and_err(signature: &Signature, text: &str) -> Words {
    let (module, name) = (signature.module, signature.name);
    let text = excerpt(text);
    let with = text.replacen(&format!("{module}.{name}"), &format!("{module}.{name}?"), 1);
    words("question-missing", format!("`{module}.{name}` leaves a value and err where one value is taken"))
        .hint(format!("write `{with}` to end the program where it fails, or `(default {text} …)`"))
}

pub(super) fn no_result(signature: &Signature) -> Words {
    words("form-operands", format!("`{signature}` gives no value"))
        .hint("write it as a statement of its own, before this form")
}

pub(super) fn value_count(head: &str, text: &str, count: i32) -> Words {
    let gives = match count {
        ..=0 => "no value".to_owned(),
        n => format!("{n} values"),
    };
    words("form-operands", format!("`{}` gives {gives} where `{head}` takes one", excerpt(text)))
}

pub(super) fn no_code(found: &str) -> Words {
    words("form-operands", format!("`{}` leaves no error code for `check` to take", excerpt(found)))
        .hint("leave out `check`: a call written with `?` ends the program where it fails")
}

pub(super) fn branch_value(count: i32) -> Words {
    let found = if count <= 0 { "nothing".to_owned() } else { format!("{count} values") };
    words("form-value", format!("this arm leaves {found} where a value is taken")).hint("end the arm with the value")
}

pub(super) fn branch_types(first: Val, found: Val) -> Words {
    let said = words(
        "operand-type",
        format!("this arm gives {}, and one before it {}", with_article(found), with_article(first)),
    );
    match conversion(found, first) {
        Some(by) => said.hint(format!("convert its value: `({by} …)`")),
        None => said,
    }
}

pub(super) fn cannot_fail(signature: &Signature) -> Words {
    words("question-extra", format!("`{signature}` cannot fail, so it takes no `?`"))
        .hint(format!("write `({}.{} …)`", signature.module, signature.name))
}

pub(super) fn call_operands(signature: &Signature, found: usize) -> Words {
    let wanted = signature.params.len();
    let plural = if wanted == 1 { "operand" } else { "operands" };
    let said = words("operand-count", format!("`{signature}` takes {wanted} {plural}, found {found}"));
    match signature.params.get(found..) {
        Some(missing) if !missing.is_empty() => {
            let names: Vec<&str> = missing.iter().map(|param| param.name).collect();
            said.hint(format!("add {}", names.join(" and ")))
        }
        _ => said.hint("close it before what does not belong to it"),
    }
}

pub(super) fn helper_operands(name: &str, wanted: usize, found: usize) -> Words {
    let plural = if wanted == 1 { "operand" } else { "operands" };
    words("operand-count", format!("`{}` takes {wanted} {plural}, found {found}", short(name)))
}

pub(super) fn let_type(name: &str, found: &str) -> Words {
    words("unknown-type", format!("`{}` is not a type", excerpt(found)))
        .hint(format!("write `(let {name} V)`, or `(let {name} i64 V)` with i32, i64 or f64"))
        .perhaps(match found {
            "=" | ":=" | ":" => Some(Change::Instead(String::new())),
            word => meant_type(word).map(|ty| Change::Instead(ty.to_owned())),
        })
}

pub(super) fn set_unknown(name: &str, value: &str) -> Words {
    words("unknown-local", format!("no local `{}` to set", short(name))).hint(format!(
        "declare it: `(let {} {})`",
        short(name),
        excerpt(value)
    ))
}

pub(super) fn target(head: &str, usage: &str, found: &str) -> Words {
    let said = words("form-operands", format!("`{head}` takes a local's name, found `{}`", excerpt(found)));
    match found.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true if is_word(found) => {
            said.hint(format!("names begin with `$`: `${}`", short(found))).instead(format!("${found}"))
        }
        true => said.hint(format!("names begin with `$`: `${}`", short(found))),
        false => said.hint(format!("write `{usage}`")),
    }
}

pub(super) fn catch_call(head: &str, found: &str) -> Words {
    words("form-operands", format!("`{head}` takes a call that may fail, found `{}`", excerpt(found)))
        .hint(format!("write `{}`", super::usage(head)))
}

pub(super) fn catch_names(results: usize, call: &str) -> Words {
    let call = excerpt(call);
    let (gives, names) = if results == 1 { ("only err", "$e") } else { ("a value and err", "$v $e") };
    words("form-operands", format!("`{call}` gives {gives}")).hint(format!("write `(catch {names} {call})`"))
}

pub(super) fn question_in_catch(head: &str, signature: &Signature) -> Words {
    let (module, name) = (signature.module, signature.name);
    words("question-extra", format!("`{head}` takes the call without `?`, which would end the program"))
        .hint(format!("write `({module}.{name} …)`"))
}

pub(super) fn catch_infallible(head: &str, signature: &Signature) -> Words {
    words("form-operands", format!("`{signature}` cannot fail, so `{head}` has nothing to do"))
        .hint(format!("use `({}.{} …)` alone", signature.module, signature.name))
}

pub(super) fn else_not_last() -> Words {
    words("form-operands", "`else` must be the last clause of `cond`").hint("move it behind the others")
}

pub(super) fn clause(found: &str) -> Words {
    words("form-operands", format!("a clause of `cond` is `(CONDITION …)` or `(else …)`, found `{}`", excerpt(found)))
        .hint("write `(cond ((= $a 1) …) (else …))`")
}

pub(super) fn count_type(text: &str, found: Val) -> Words {
    words("operand-type", format!("`{}` is {}: `for` counts in i32 or i64", excerpt(text), with_article(found)))
}

pub(super) fn outside_loop(head: &str) -> Words {
    words("outside-loop", format!("`{head}` stands outside of `while`, `for` and `each`"))
        .hint("leave a WAT `loop` or `block` by its label: `(br $label)`")
}

pub(super) fn ret_in_helper(found: &str) -> Words {
    words("form-result", "`ret` ends the program, and stands in a function of its own")
        .hint(format!("write `(return …)` for `{}`", excerpt(found)))
}

pub(super) fn two_operands(head: &str, found: usize) -> Words {
    words("form-operands", format!("`{head}` takes 2 operands, found {found}"))
        .hint(format!("nest them: `({head} ({head} A B) C)`"))
}

pub(super) fn compared_text(head: &str, [a, b]: [&str; 2]) -> Words {
    let (a, b) = (excerpt(a), excerpt(b));
    let said = words("compared-text", format!("`{head}` compares numbers: of strings, their addresses"));
    match head {
        "=" => said.hint(format!("write `(str.eq {a} {b})`")),
        "!=" => said.hint(format!("write `(not (str.eq {a} {b}))`")),
        _ => said.hint(format!("write `({head} (str.cmp {a} {b}) 0)`")),
    }
}

pub(super) fn no_operator(head: &str, ty: Val) -> Words {
    let said = words("operand-type", format!("there is no `{head}` of {}", with_article(ty)));
    match conversion(ty, Val::I64) {
        Some(by) if ty != Val::I32 => said.hint(format!("convert both: `({by} …)`")),
        _ => said,
    }
}

pub(super) fn fmt_template(found: &str) -> Words {
    words("form-operands", format!("`fmt` takes a text first, found `{}`", excerpt(found)))
        .hint("write `(fmt \"{} and {i}\" $text $number)`; strings are joined with `str.cat?`")
}

pub(super) fn fmt_hole(found: &str) -> Words {
    words("fmt-hole", format!("`{}` is not a hole of `fmt`", excerpt(found)))
        .hint("write `{}` for a string, `{i}` for an i32, `{.2}` for an f64 with 2 digits, `{{` and `}}` for braces")
}

pub(super) fn fmt_count(holes: usize, values: usize) -> Words {
    let plural = if holes == 1 { "hole" } else { "holes" };
    words("fmt-count", format!("the text has {holes} {plural}, and {values} values follow it"))
        .hint("give one value for each `{}`, `{i}` and `{.2}`; write a brace as `{{`")
}
