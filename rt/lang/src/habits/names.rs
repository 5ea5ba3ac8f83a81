//! Names from other languages.

use crate::Signatures;

/// The forms and functions that correspond to names from other languages, each with these names.
const HEADS: &[(&str, &[&str])] = &[
    ("not", &["!"]),
    ("!=", &["!==", "/=", "<>", "neq", "not="]),
    ("and", &["&&"]),
    ("=", &["==", "===", "eq?", "equal", "equal?", "equals", "eqv?", "is", "string=?"]),
    ("set", &["assign", "set!", "setf", "setq"]),
    ("do", &["begin", "progn"]),
    ("str", &["concatenate", "string-append"]),
    ("str.to_int", &["Number", "parseInt", "parse-int", "parse_int", "string->number"]),
    ("out", &["console.log", "display", "echo", "emit", "println", "output", "puts"]),
    ("dbg.log", &["console.error"]),
    ("let", &["def", "defvar", "define", "let*", "let!", "letrec", "var", "const"]),
    ("each", &["dolist", "for-each", "foreach", "doseq"]),
    ("len", &["length", "size", "strlen", "string-length"]),
    ("fmt", &["format", "sprintf"]),
    ("unless", &["if-not", "when-not"]),
    ("str.to_float", &["parseFloat", "parse-float"]),
    ("map", &["make-hash", "make-hash-table", "new-map", "hash-map"]),
    ("obj", &["object", "dict"]),
    ("list", &["new-list"]),
    ("arr", &["vector", "array"]),
    ("str.ends_with", &["endswith"]),
    ("str.starts_with", &["startswith"]),
    ("str.from_int", &["i32.to_string", "int-to-string", "number->string"]),
    ("%", &["mod", "modulo", "remainder"]),
    ("sys.sleep", &["sleep"]),
    ("str.slice", &["substring"]),
    ("or", &["||"]),
];

/// Returns the form or function that corresponds to a name from another language, or `None` if
/// there is none in this language or on this host.
pub(crate) fn head(name: &str, host: &Signatures) -> Option<&'static str> {
    let (meant, _) = HEADS.iter().find(|(_, names)| names.contains(&name))?;
    let function = meant.trim_end_matches('?');
    (!function.contains('.') || host.get(function).is_some()).then_some(*meant)
}

/// Hints for names from other languages that correspond to several forms or functions, or to a
/// longer form.
const HINTS: &[(&[&str], &str)] = &[
    (&["and-then"], "write the forms one after another: a call that fails ends the program"),
    (
        &["apply"],
        "write a loop: `(each $x $a (+= $sum $x))`; `min`, `max` and `+` take their operands one \
         by one",
    ),
    (&["assert"], "write `(unless C (fail ETRFM \"why\"))`"),
    (&["async", "await"], "calls wait for their results: write them without it"),
    (&["case", "switch"], "write `(cond ((= $x V) …) … (else …))`"),
    (&["class"], "write functions, `(fn $f ($a $b) …)`, and maps"),
    (&["cdr", "rest"], "write `(arr.slice $a 1)`"),
    (&["enumerate"], "write `(each $i $x ARR …)`: the index, then the item"),
    (
        &["exists", "file.exists", "fs.exists"],
        "write `(catch $v $e (fs.stat PATH))`: `$e` is 0 if the path exists",
    ),
    (
        &["exit"],
        "write `(ret)` to end the program, or `(fail CODE \"why\")` to end it with an error",
    ),
    (&["defmacro"], "write `(fn $f ($a $b) …)`; there are no macros"),
    (&["defstruct", "struct"], "write a map: `(map \"name\" V …)`"),
    (&["flatmap", "mapcar", "mapv"], "write `(map $a (fn ($x) V))`"),
    (&["fold", "foldl", "reduce"], "write a loop: `(let $sum 0) (each $x $a (+= $sum V))`"),
    (&["for-each"], "write `(each $x $a …)`"),
    (&["->"], "nest the calls, `(g (f X))`; the type of a function's result is not written"),
    (
        &["=>", "lambda"],
        "write `(fn ($x) E)` in `map`, `filter` or `sort`, or `(fn $f ($x) …)` at the top level",
    ),
    (
        &["iota", "range"],
        "write `(for $i FROM TO …)`, TO excluded; `(ints N)` is an array of N zeros",
    ),
    (&["loop"], "write `(while C …)`, or `(for $i FROM TO …)`"),
    (&["json.loads", "json.decode", "JSON.parse"], "write `(json S)`"),
    (&["recur"], "write `(while C …)` and set its variables, or call the function itself"),
    (&["with-open"], "files need not be opened or closed: write `(fs.read PATH)`"),
    (&["sys.exit"], "write `(ret)` to end the program, or `(fail CODE \"why\")` for an error"),
    (&["quit"], "write `(ret)` to end the program"),
    (&["zip"], "write `(each $i $x $a …)`, in which `(at $b $i)` is the other item"),
    (&["yield"], "push the values to an array, and return it"),
    (&["error", "panic", "raise", "throw"], "write `(fail CODE \"why\")`"),
    (&["except"], "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    (&["import", "require"], "call functions by their full names, without an import"),
    (&["log"], "write `(dbg.log …)` to log, or `(out …)` to output a result"),
    (
        &["nil?"],
        "a string is never nil: compare it with `\"\"`; `(default CALL D)` replaces a failure",
    ),
    (&["defined?"], "every variable is declared before its use: no test is needed"),
    (
        &["string?", "number?"],
        "the types of all values are known before the program runs: no test is needed",
    ),
    (
        &["try"],
        "write `(catch $v $e $why (CALL …))` and `(when (!= $e 0) …)`, or `(default (CALL …) D)`",
    ),
];

/// Returns the hint for a name from another language, if there is one.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(names, _)| names.contains(&name)).map(|(_, hint)| *hint)
}
