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
    ("concat", "str.cat"),
    ("concatenate", "str.cat"),
    ("console.log", "dbg.log"),
    ("def", "let"),
    ("defvar", "let"),
    ("define", "let"),
    ("display", "out"),
    ("dolist", "each"),
    ("echo", "out"),
    ("emit", "out"),
    ("eq?", "="),
    ("equal", "="),
    ("equal?", "="),
    ("equals", "="),
    ("eqv?", "="),
    ("length", "len"),
    ("count", "len"),
    ("size", "len"),
    ("println", "out"),
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
    ("string->number", "str.to_int"),
    ("string-append", "str.cat"),
    ("string-length", "len"),
    ("string=?", "="),
    ("substring", "str.slice"),
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
    ("dict", "write `(map K V …)`, and `(put $m K V)`"),
    ("error", "write `(fail CODE)`"),
    ("except", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("hash-map", "write `(map K V …)`, and `(put $m K V)`"),
    ("import", "call functions by their full names, without an import"),
    ("lambda", "write `(fn $f ($x) …)` at the top level, and call it: `($f …)`"),
    ("list", "write `(arr A B …)`, and `(push $a V)`"),
    ("log", "write `(dbg.log …)` to log, or `(out …)` to output a result"),
    ("panic", "write `(fail CODE)`"),
    ("raise", "write `(fail CODE)`"),
    ("require", "call functions by their full names, without an import"),
    ("switch", "write `(cond (C …) … (else …))`"),
    ("throw", "write `(fail CODE)`"),
    ("try", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("vector", "write `(arr A B …)`, and `(push $a V)`"),
];

/// Returns the hint for a name from another language.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(known, _)| *known == name).map(|(_, hint)| *hint)
}
