//! Tests that assembling arbitrary text returns a module or a diagnostic.

use proptest::prelude::*;
use wattle_lang::{FixResult, Signatures, assemble, check, explain, fix, locate};

use crate::common;

/// Runs all stages on a source. Checks that [`explain`] and the validator agree on whether the
/// source is valid. The error is the code of the diagnostic.
fn take(source: &str, host: &Signatures) -> Result<(), String> {
    let diagnostic = explain(source, host);
    if source.len() <= 1 << 16 {
        check_fixing(source, host, diagnostic.is_none());
    }
    let Ok(program) = assemble(source, host) else {
        assert!(diagnostic.is_some(), "{source}");
        return Err(diagnostic.unwrap().code.to_owned());
    };
    let valid = program
        .encode()
        .is_ok_and(|binary| wasmparser::Validator::new().validate_all(&binary).is_ok());
    // A module that is too large to compile is still valid.
    if diagnostic.as_ref().is_none_or(|diagnostic| diagnostic.code != "too-large") {
        assert_eq!(valid, diagnostic.is_none(), "{source}\n{diagnostic:?}\n{}", program.module);
    }
    let _ = locate(source, host, program.module.len() / 2);
    diagnostic.map_or(Ok(()), |diagnostic| Err(diagnostic.code.to_owned()))
}

/// Checks that fixing a program terminates, keeps the number of lines, and leaves a valid program
/// unchanged. A fault must remain after the fixes if and only if the fixed program is invalid.
fn check_fixing(source: &str, host: &Signatures, good: bool) {
    let FixResult { source: text, applied, rest } = fix(source, host);
    assert_eq!(good, applied.is_empty() && rest.is_none(), "{source}");
    assert_eq!(text == source, applied.is_empty(), "{source}");
    assert_eq!(text.matches('\n').count(), source.matches('\n').count(), "{source}\n{text}");
    assert_eq!(rest.is_none(), explain(&text, host).is_none(), "{source}\n{text}");
    let all = check(source, host, 4);
    assert_eq!(good, all.is_empty(), "{source}");
    for fault in applied.iter().chain(&all) {
        let (start, end) = (fault.span.start as usize, fault.span.end as usize);
        assert!(source.get(start..end).is_some(), "{source}\n{fault}");
        let _ = fault.render(source, |_, piece| piece.to_owned());
    }
}

#[test]
fn giant_programs_end_in_a_diagnostic() {
    let host = common::host();
    let code = |source: String| take(&source, &host).err().unwrap_or_default();
    assert_eq!(code("x".repeat((1 << 20) + 1)), "too-long");
    assert_eq!(code("(".repeat(1 << 20)), "too-deep");
    assert_eq!(code(")".repeat(1 << 20)), "stray-paren");
    assert_eq!(code(format!("{}{}", "(block ".repeat(100_000), ")".repeat(100_000))), "too-deep");
    assert_eq!(code(format!("(resv \"{}\")", "a".repeat((1 << 20) - 20))), "");
    assert_eq!(code("(; ".repeat(300_000)), "unclosed-comment");
    assert_eq!(code("\"a ".repeat(300_001)), "unclosed-string");
    assert_eq!(code("$.".repeat(500_000)), "unknown-local");
    assert_eq!(code(format!("(resv \"{}\")", "\\".repeat(500_000))), "");
    // Each call passes a value. 30,000 values are allowed, and the program itself uses three.
    assert_eq!(code("(resv \"a\")".repeat(29_990)), "");
    assert_eq!(code("(resv \"a\")".repeat(100_000)), "too-large");
    assert_eq!(code((0..29_990).map(|n| format!("(resv \"{n}\")")).collect()), "");
    assert_eq!(code((0..50_000).map(|n| format!("(resv \"{n}\")")).collect()), "too-large");
    assert_eq!(
        code(
            (0..10_000).map(|n| format!("(local $x{n} i32)")).collect::<String>() + "(i32.const 0)"
        ),
        ""
    );
    assert_eq!(code("(local i32)".repeat(60_000)), "too-many-locals");
    assert_eq!(
        code((0..900).map(|n| format!("(func $f{n})")).collect::<String>() + "(call $g)"),
        "unknown-function"
    );
    assert_eq!(
        code((0..20_000).map(|n| format!("(func $f{n})")).collect::<String>() + "(call $g)"),
        "too-large"
    );
    assert_eq!(code("block ".repeat(100_000)), "too-deep");
    assert_eq!(code("block ".repeat(1_000)), "block-end");
    // Each repetition is two instructions. The maximum is 60,000.
    assert_eq!(code("block end ".repeat(29_990)), "");
    assert_eq!(code("block end ".repeat(100_000)), "too-large");
    assert_eq!(code("(drop \"\\ff\")".repeat(29_990)), "");
    assert_eq!(code("(drop \"\\ff\")".repeat(70_000)), "too-large");
    assert_eq!(code("(call $f)".repeat(50_000) + "(func $f)"), "");
    assert_eq!(code("(call $str.len \"a\" \"b\")".repeat(40_000)), "operand-count");
    assert_eq!(code("(export \"x\" (func $f))".repeat(40_000) + "(func $f)"), "");
    assert_eq!(code("call $str.length ".repeat(50_000)), "unknown-function");
    assert_eq!(code("```".repeat(300_000)), "empty");
    check_fixing(&"(resv “a”)".repeat(60_000), &host, false);
}

#[test]
fn unusual_characters_end_in_a_diagnostic() {
    let host = common::host();
    for (source, code) in [
        ("\0", "bad-character"),
        ("\u{feff}(i32.const\u{a0}0)\u{2003}", ""),
        ("(resv \"\0\u{202e}\u{2066}abc\") ;; \u{202e}", ""),
        ("(resv \"שלום\")", ""),
        ("(call $שלום)", "bad-character"),
        ("(local $a\u{301} i32)", "bad-character"),
        ("\r\n(resv \"x\")\r(i32.const 0)\r\n", ""),
        ("$", "unknown-local"),
        ("@", "bad-character"),
        ("(@custom \"x\")", "bad-character"),
        ("$\"name\"", "bad-character"),
        ("\"", "unclosed-string"),
        ("\\", "unknown-instruction"),
    ] {
        assert_eq!(take(source, &host).err().unwrap_or_default(), code, "{source:?}");
    }
}

/// Source fragments. Random sequences of them are valid programs more often than random characters
/// are.
const PIECES: &[&str] = &[
    "(",
    "(",
    ")",
    ")",
    ")",
    "block",
    "loop",
    "if",
    "then",
    "else",
    "end",
    "(then",
    "(else",
    "(block",
    "(if",
    "(loop",
    "call",
    "(call",
    "$str.len",
    "$http.get",
    "$kv.set",
    "$f",
    "$x",
    "$y",
    "$b",
    "(func",
    "(param",
    "(result",
    "i32",
    "i64",
    "f64",
    "(local",
    "(local.set",
    "(local.get",
    "local.get",
    "local.set",
    "local.tee",
    "(i32.const",
    "0",
    "1",
    "-1",
    "i32.const",
    "i64.const",
    "i32.add",
    "(i32.add",
    "i32.eqz",
    "drop",
    "(drop",
    "return",
    "(return",
    "unreachable",
    "br",
    "br_if",
    "(br",
    "(br_if",
    "br_table",
    "select",
    "(select",
    "argv",
    "(argv",
    "(check",
    "(resv",
    "\"text\"",
    "'text'",
    "“text”",
    ",",
    ";",
    "//",
    "$str.lenn",
    "$strlen",
    "$X",
    "\"\"\"block\"\"\"",
    ";; note\n",
    "\n",
    "(module",
    "(import",
    "(memory",
    "(export",
    "(global",
    "(mut",
    "global.get",
    "global.set",
    "$g",
    "(type",
    "(table",
    "(elem",
    "(data",
    "ref.func",
    "ref.null",
    "func",
    "nop",
    "memory.size",
    "i32.load",
    "i64.extend_i32_s",
    "offset=4",
    "```",
    "call_indirect",
    "f64.const",
    "(ref",
    "v128.const",
    "memory.init",
    "table.get",
    "return_call",
    "(i32.const 0)",
    "(i32.const 1)",
    "(local.get $x)",
    "(local $x i32)",
    "(local $y f64)",
    "(call $str.len (local.get $x))",
    "(drop)",
    "(nop)",
    "(func $f (param i32) (result i32)",
    "(global $g (mut i32) (i32.const 0))",
    "(block $b (result i32)",
    "(local.set $x)",
    "(if (local.get $x) (then",
    "(br $b)",
    "(unreachable)",
    "(return (i32.const 0))",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_ends_in_a_module_or_a_diagnostic(source in any::<String>()) {
        let _ = take(&source, &common::host());
    }

    #[test]
    fn any_pieces_end_in_a_module_or_a_diagnostic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
    ) {
        let _ = take(&pieces.join(" "), &common::host());
    }

    /// Covers programs with one token removed, duplicated or swapped with the next one.
    #[test]
    fn damaged_programs_end_in_a_module_or_a_diagnostic(at in 0_usize..200, kind in 0_usize..3) {
        let source = include_str!("../expand/helpers.wat");
        let mut tokens: Vec<&str> = source.split_inclusive([' ', '\n', '(', ')']).collect();
        let at = at % (tokens.len() - 1);
        match kind {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at]),
            _ => tokens.swap(at, at + 1),
        }
        let _ = take(&tokens.concat(), &common::host());
    }
}
