//! Names from other languages.

use crate::Signatures;

/// Names from other languages that correspond to exactly one form or function.
const HEADS: &[(&str, &str)] = &[
    ("!", "not"),
    ("!==", "!="),
    ("&&", "and"),
    ("/=", "!="),
    ("<>", "!="),
    ("==", "="),
    ("===", "="),
    ("assign", "set"),
    ("begin", "do"),
    ("concat", "str.cat?"),
    ("concatenate", "str.cat?"),
    ("console.log", "dbg.log"),
    ("def", "let"),
    ("defvar", "let"),
    ("define", "let"),
    ("display", "out"),
    ("dolist", "each"),
    ("echo", "out"),
    ("emit", "out"),
    ("eq?", "="),
    ("equal", "str.eq"),
    ("equal?", "str.eq"),
    ("equals", "str.eq"),
    ("eqv?", "="),
    ("for-each", "each"),
    ("foreach", "each"),
    ("format", "fmt"),
    ("if-not", "unless"),
    ("int-to-string", "str.from_int"),
    ("let*", "let"),
    ("let!", "let"),
    ("letrec", "let"),
    ("mod", "%"),
    ("modulo", "%"),
    ("neq", "!="),
    ("not=", "!="),
    ("number->string", "str.from_int"),
    ("output", "out"),
    ("printf", "fmt"),
    ("progn", "do"),
    ("puts", "out"),
    ("remainder", "%"),
    ("set!", "set"),
    ("setf", "set"),
    ("setq", "set"),
    ("sprintf", "fmt"),
    ("string->number", "str.to_int?"),
    ("string-append", "str.cat?"),
    ("string-length", "str.len"),
    ("string=?", "str.eq"),
    ("string?", "str.eq"),
    ("substring", "str.slice?"),
    ("var", "let"),
    ("const", "let"),
    ("||", "or"),
];

/// Returns the form or function that corresponds to a name from another language.
pub(crate) fn head(name: &str, host: &Signatures) -> Option<&'static str> {
    let (_, meant) = HEADS.iter().find(|(known, _)| *known == name)?;
    let function = meant.trim_end_matches('?');
    (!function.contains('.') || host.get(function).is_some()).then_some(*meant)
}

/// Hints for names from other languages that correspond to several forms or functions, or to a
/// longer form.
const HINTS: &[(&str, &str)] = &[
    ("case", "write `(cond (C …) … (else …))`"),
    ("dict", "write `(map.new)`, and `(map.set? $m K V)`"),
    ("error", "write `(fail CODE)`"),
    ("except", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("hash-map", "write `(map.new)`, and `(map.set? $m K V)`"),
    ("import", "call functions by their full names, without an import"),
    (
        "lambda",
        "write `(func $f (param $x i32) (result i32) …)` at the top level, and call it: `($f …)`",
    ),
    ("len", "write `(str.len $s)`, `(arr.len $a)` or `(map.len $m)`"),
    ("length", "write `(str.len $s)`, `(arr.len $a)` or `(map.len $m)`"),
    ("list", "write `(arr.new)`, and `(arr.push? $a V)`"),
    ("log", "write `(dbg.log …)` to log, or `(out …)` to output a result"),
    ("match", "write `(cond (C …) … (else …))`"),
    ("panic", "write `(fail CODE)`"),
    ("print", "write `(out …)` to output a result, or `(dbg.log …)` to log"),
    ("println", "write `(out …)` to output a result, or `(dbg.log …)` to log"),
    ("raise", "write `(fail CODE)`"),
    ("require", "call functions by their full names, without an import"),
    ("switch", "write `(cond (C …) … (else …))`"),
    ("throw", "write `(fail CODE)`"),
    ("try", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("vector", "write `(arr.new)`, and `(arr.push? $a V)`"),
];

/// Returns the hint for a name from another language.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(known, _)| *known == name).map(|(_, hint)| *hint)
}
