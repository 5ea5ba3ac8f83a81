//! Messages about a program's functions, imports, exports and other top-level items, and about the
//! locals, parameters and results of a function.

use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::diagnose::truncate::excerpt;
use crate::diagnose::wording::{Message, counted, message, with_article};
use crate::types::{Type, Val};
use crate::{Signature, Signatures};

messages! {
    empty() "empty"
        "the program is empty" => "write forms, such as `(out \"hello\")`";
    missing_body() "no-body"
        "there are several functions, but none is named `$run`"
        => "write the program's instructions outside the functions, or name its function `$run`";
    two_bodies() "two-bodies"
        "there are instructions outside the program's function"
        => "move them into that function, or remove the function around the others";
    module_among_others() "module-form"
        "`(module …)` is next to other forms"
        => "write the program's instructions without a module";
    two_programs() "no-body"
        "two functions are named or exported as the program, `run`"
        => "rename the helper function and remove its export";
    run_params() "program-type"
        "the program's function cannot have parameters or a type"
        => "write the forms of the program outside functions, and `(arg 0)` for its first argument";
    run_result() "program-type"
        "the program's function must return one i32, the error code"
        => "write `(result i32)` or nothing, and output results with `(resv $p)`";
    /// Reports a function inside another form. `head` and `line` describe the form that is probably
    /// not closed.
    nested_function(head: &str, line: u32) "nested-function"
        "a function begins inside another form"
        => "functions are written at the top level; check that the form `({head}` of line {line} \
            is closed before this";
    /// Reports an anonymous function that is an operand of a form, as in `(map (fn ($x) …) $a)`.
    anonymous_function() "nested-function"
        "a function is not a value"
        => "write a loop, `(each $x $a …)`, or give the function a name at the top level, `(fn $f \
            ($x) …)`, and call it: `($f …)`";
    data_field() "data-field"
        "`(data …)` is not allowed: the runtime lays out static data"
        => "write a string literal instead of a pointer, as in `(call $dbg.log \"text\")`";
    start_field() "start-field"
        "`(start …)` is not allowed" => "name the function that runs `$run`";
    dropped_memory() "dropped-field"
        "ignored the memory declaration: the runtime declares the only memory";
    dropped_export() "dropped-field"
        "ignored the export: only the program itself is exported";
    misleading_import(name: &str, full_name: &str) "misleading-import"
        "`{name}` names the import `{full_name}`, but is itself a host function"
        => "remove the import: call host functions by their own names";
    duplicate_function(name: &str) "duplicate-name"
        "there is already a function `{name}`" => "rename one of them";
    function_number(number: &str) "function-number"
        "function {number} is called by its number"
        => "call functions by name: their numbers depend on the imports";
    /// Reports a program in another language.
    other_language(language: &str, line: &str) "other-language"
        "this is {language}, not Wattle: `{line}`"
        => "write forms in parentheses: `(let $x V)`, `(set $x V)`, `(for $i 0 N …)`, `(each $x $a \
            …)`, `(if C A B)`, `(fn $f ($a) …)`, `(out V)`" where line = excerpt(line);
    host_function_name(known: &Signature) "duplicate-name"
        "`${module}.{name}` is a host function"
        => "call the host function, `${known}`, or rename yours"
        where module = known.module, name = known.name;
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
    missing_type(name: &str, param: bool) "no-type"
        "`{name}` is declared without a type" => "write `({kind} {name} i32)`"
        fix replace_with(format!("{name} i32"))
        where kind = if param { "param" } else { "local" };
    unknown_type(found: &str) "unknown-type"
        "`{shown}` is not a type"
        => "types are i32, i64, f32 and f64; pointers, strings and handles are i32"
        fix maybe_safe(meant_type(found).map(|ty| Change::Replace(ty.to_owned())))
        where shown = excerpt(found);
    fn_name(found: &str) "form-operands"
        "`fn` takes the name of the function first, found `{shown}`"
        => "write `(fn $f ($a $b) …)`" fix maybe_safe(with_dollar(found))
        where shown = excerpt(found);
    fn_param(found: &str) "form-operands"
        "`{shown}` is not a parameter" => "write `$x`, or `($x str)` with its type"
        fix maybe_safe(with_dollar(found).filter(|_| !is_known)) where shown = excerpt(found),
        // WAT keywords and type names are not parameter names.
        is_known = matches!(found, "param" | "result") || Type::from_name(found).is_some();
    form_operands(head: &str, usage: &str, wanted: usize, found: usize) "form-operands"
        "`{head}` takes {wanted}, found {found}"
        => match (head, found) {
            ("out" | "print" | "ret" | "resv", 2..) =>
                "write `({head} \"{holes}\" …)` with all values, or one `{head}` for each",
            _ => "write `{usage}`",
        } where wanted = counted(wanted, "argument"), holes = vec!["{}"; found.min(8)].join(" ");
    /// Reports a `func` with parameters in the syntax of `fn`. `head` is the range of the word
    /// `func`.
    func_params(params: &str, head: std::ops::Range<usize>) "function-params"
        "`func` takes `(param $x i32)`, found `{params}`" => "write `(fn $f {params} …)`"
        fix safe(Change::edit(head, "fn")) where params = excerpt(params);
    unknown_import(full_name: &str, host: &Signatures) "unknown-import"
        "no host function `{full_name}` to import"
        => match (nearest::functions(full_name, host, &[])) {
            Some(near) => "{near}",
            None => "imports need not be declared",
        };
    /// Reports an unknown head such as `foo.bar`, which can only be the name of a host function.
    unknown_head(name: &str, host: &Signatures) "unknown-function"
        "no host function `{shown}`"
        fix maybe_hint(near.map(|near| near.replace("`$", "`")))
        where plain = name.trim_start_matches('$').trim_end_matches('?'), shown = excerpt(plain),
        near = nearest::functions(plain, host, &[]).or_else(|| nearest::modules(host));
}

/// Returns the change that puts a `$` before a word. Returns `None` if it would not be a name.
fn with_dollar(word: &str) -> Option<Change> {
    let is_word = word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    (is_word && !word.is_empty()).then(|| Change::Replace(format!("${word}")))
}

/// Reports an unknown function. `written` is the name in the source, or empty if the name comes
/// from generated code.
pub(crate) fn unknown_function(
    full_name: &str,
    written: &str,
    host: &Signatures,
    own: &[&str],
) -> Message {
    let plain = !written.is_empty() && !written.starts_with('$');
    if plain && let Some(known) = host.get(full_name) {
        return message("unknown-function", format!("`{written}` is not a name"))
            .hint(format!("names begin with `$`: `${known}`"))
            .replace_with(format!("${full_name}"));
    }
    let kind = if full_name.contains('.') { "host function" } else { "function" };
    message("unknown-function", format!("no {kind} `${}`", excerpt(full_name)))
        .maybe_hint(nearest::functions(full_name, host, own).or_else(|| nearest::modules(host)))
        .maybe_safe(
            nearest::certain_function(full_name, host, own)
                .filter(|_| !written.is_empty())
                .map(Change::Replace),
        )
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
