//! Messages about the locals, parameters and results of a function.

use super::{Message, counted, message, with_article};
use crate::diagnose::fix::Change;
use crate::diagnose::truncate::excerpt;
use crate::types::{Type, Val};

messages! {
    two_types(name: &str, first: &str, second: &str, line: u32) "duplicate-name"
        "`{name}` is declared as {second} here and as {first} on line {line}"
        => "rename one of them";
    duplicate_param(name: &str, line: u32) "duplicate-name"
        "`{name}` is already a parameter, declared on line {line}"
        => "rename the local, or set the parameter";
    fn_params(name: &str) "form-operands"
        "`{name}` has no list of parameters" => "write `(fn {name} ($a $b) …)`; `()` for none"
        where name = excerpt(name);
    fn_param_type(found: &str) "unknown-type"
        "`{found}` is not a type"
        => "types are int, long, float, str, arr and map, and the number arrays ints, longs, \
            floats and bytes" where found = excerpt(found);
    same_param(name: &str) "duplicate-name"
        "two parameters are named `{name}`" => "rename one of them" where name = excerpt(name);
    argv_target(found: &str) "form-operands"
        "`argv` takes the name of a local, found `{found}`" => "write `(argv N $p)`"
        where found = excerpt(found);
    cannot_return_code(form: &str, func: &str) "form-result"
        "`{form}` returns an error code, but `{func}` does not return one i32"
        => "add `(result i32)` to the function, or test the error with `if`";
    form_target(form: &str, name: &str, found: Val) "operand-type"
        "`{form}` sets `{name}` to a pointer, an i32, but `{name}` is {found}"
        => "remove its declaration: `{form}` declares it" where found = with_article(found);
}

pub(crate) fn missing_type(name: &str, param: bool) -> Message {
    let kind = if param { "param" } else { "local" };
    message("no-type", format!("`{name}` is declared without a type"))
        .hint(format!("write `({kind} {name} i32)`"))
        .replace_with(format!("{name} i32"))
}

pub(crate) fn unknown_type(found: &str) -> Message {
    message("unknown-type", format!("`{}` is not a type", excerpt(found)))
        .hint("types are i32, i64, f32 and f64; pointers, strings and handles are i32")
        .maybe_safe(meant_type(found).map(|ty| Change::Replace(ty.to_owned())))
}

/// Returns the WAT type that corresponds to a type name in another language, if any.
pub(crate) fn meant_type(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "i32" | "int" | "int32" | "u32" | "uint" | "integer" | "bool" | "boolean" | "ptr"
        | "pointer" | "string" | "str" | "usize" | "handle" | "array" | "map" | "i16" | "u16"
        | "i8" | "u8" | "byte" => "i32",
        "i64" | "int64" | "u64" | "uint64" | "long" => "i64",
        "f64" | "float64" | "double" => "f64",
        "f32" | "float32" => "f32",
        _ => return None,
    })
}

pub(crate) fn fn_name(found: &str) -> Message {
    let message = message(
        "form-operands",
        format!("`fn` takes the name of the function first, found `{}`", excerpt(found)),
    )
    .hint("write `(fn $f ($a $b) …)`");
    let is_word = found.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if is_word && !found.is_empty() { message.replace_with(format!("${found}")) } else { message }
}

pub(crate) fn fn_param(found: &str) -> Message {
    let message = message("form-operands", format!("`{}` is not a parameter", excerpt(found)))
        .hint("write `$x`, or `($x str)` with its type");
    let is_word = found.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    // WAT keywords and type names are not parameter names.
    let is_known = matches!(found, "param" | "result") || Type::from_name(found).is_some();
    if is_word && !found.is_empty() && !is_known {
        message.replace_with(format!("${found}"))
    } else {
        message
    }
}

pub(crate) fn form_operands(head: &str, usage: &str, wanted: usize, found: usize) -> Message {
    message(
        "form-operands",
        format!("`{head}` takes {}, found {found}", counted(wanted, "argument")),
    )
    .hint(match (head, found) {
        ("out" | "print" | "ret" | "resv", 2..) => format!(
            "write `({head} \"{}\" …)` with all values, or one `{head}` for each",
            vec!["{}"; found.min(8)].join(" ")
        ),
        _ => format!("write `{usage}`"),
    })
}

/// Reports a `func` with parameters in the syntax of `fn`. `head` is the range of the word `func`.
pub(crate) fn func_params(params: &str, head: std::ops::Range<usize>) -> Message {
    message(
        "function-params",
        format!("`func` takes `(param $x i32)`, found `{}`", excerpt(params)),
    )
    .hint(format!("write `(fn $f {} …)`", excerpt(params)))
    .safe(Change::Edits(vec![(head, "fn".to_owned())]))
}
