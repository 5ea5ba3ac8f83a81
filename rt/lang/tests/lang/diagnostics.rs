//! Tests of the diagnostic for each broken program, and of the program after its safe fixes. The
//! files `tests/diagnostics/*.txt` contain cases of this form:
//!
//! ```text
//! === what is broken
//! program
//! ---
//! diagnostic
//! safe: what the fix changes
//! --- fixed
//! the program after all safe fixes, if it is valid
//! ```
//!
//! `UPDATE=1` rewrites everything except the programs.

use std::fmt::Write;

use wattle_cases::Case;
use wattle_lang::{Certainty, Diagnostic, FixResult, Signatures, assemble, check, explain, fix};

use crate::common;

/// Minimum percentage of broken programs that safe fixes must make valid.
const CERTAIN: usize = 60;

#[test]
fn every_broken_program_gets_its_diagnostic_and_its_fix() {
    let host = common::host();
    let mut comparison = wattle_cases::Comparison::new();
    let (mut broken, mut fixed) = (0, 0);
    let mut valid = Vec::new();
    for path in wattle_cases::files("tests/diagnostics", "txt") {
        let text = wattle_cases::read(&path);
        let mut found = String::new();
        for Case { title, input, .. } in wattle_cases::split(&text).1 {
            let source = input.trim_end_matches('\n');
            let Some(finding) = diagnose(source, &host) else {
                valid.push(format!("{}: {title}\n{source}", path.display()));
                continue;
            };
            write!(found, "=== {title}\n{source}\n---\n{}", finding.text).unwrap();
            if let Some(repaired) = &finding.repaired {
                write!(found, "--- fixed\n{repaired}\n").unwrap();
            }
            found.push('\n');
            broken += usize::from(finding.is_error);
            fixed += usize::from(finding.repaired.is_some());
        }
        comparison.add(&path, &format!("{}\n", found.trim_end()));
    }
    assert!(valid.is_empty(), "nothing is wrong with:\n\n{}", valid.join("\n\n"));
    comparison.finish();
    assert!(broken >= 200, "{broken} broken programs");
    assert!(fixed * 100 >= broken * CERTAIN, "{fixed} of {broken} broken programs are fixed");
}

/// The diagnostics for a program, and the program after its safe fixes if it is then valid.
struct Finding {
    text: String,
    is_error: bool,
    repaired: Option<String>,
}

/// Returns the diagnostics for a program, or `None` if the program is valid and has no warnings.
fn diagnose(source: &str, host: &Signatures) -> Option<Finding> {
    let finding = explain(source, host);
    let assembled = assemble(source, host);
    if let Err(diagnostic) = &assembled {
        assert_eq!(Some(diagnostic), finding.as_ref());
    }
    let Some(finding) = finding else {
        assert!(valid(source, host).is_ok(), "no diagnostic for an invalid program: {source}");
        let warnings: Vec<String> =
            assembled.unwrap().warnings.iter().map(ToString::to_string).collect();
        let text = warnings.join("\n");
        return (!warnings.is_empty()).then_some(Finding { text, is_error: false, repaired: None });
    };
    assert!(
        assembled.is_err() || valid(source, host).is_err(),
        "the module is valid, but: {finding}"
    );
    let all = check(source, host, 10);
    assert!(all.iter().any(|fault| fault.message == finding.message), "{source}");
    let mut text = finding.to_string();
    if let Some(fix) = &finding.fix {
        let certainty = if fix.certainty == Certainty::Safe { "safe" } else { "likely" };
        writeln!(text, "{certainty}: {}", fix.description).unwrap();
    }
    let FixResult { source: repaired, applied, rest } = fix(source, host);
    if rest.is_some() {
        return Some(Finding { text, is_error: true, repaired: None });
    }
    assert!(!applied.is_empty());
    assert_eq!(
        repaired.matches('\n').count(),
        source.matches('\n').count(),
        "lines stay where they are"
    );
    valid(&repaired, host).unwrap_or_else(|error| panic!("{error}\n{repaired}"));
    Some(Finding { text, is_error: true, repaired: Some(repaired) })
}

/// Translates a program and validates its module.
fn valid(source: &str, host: &Signatures) -> Result<(), String> {
    let binary =
        assemble(source, host).map_err(|e| e.to_string())?.encode().map_err(|e| e.to_string())?;
    wasmparser::Validator::new().validate_all(&binary).map(drop).map_err(|e| e.to_string())
}

#[test]
fn diagnostics_have_a_json_form() {
    let diagnostic =
        assemble("(argv 0 $u)\n(call $http.fetch (local.get $u))", &common::host()).unwrap_err();
    assert_eq!(
        diagnostic.to_json().to_string(),
        concat!(
            r#"{"severity":"error","code":"unknown-function","line":2,"column":7,"#,
            r#""span":{"start":18,"end":29,"line":2,"column":7,"end_line":2,"end_column":18},"#,
            r#""message":"no host function `$http.fetch`","#,
            r#""hint":"nearest: `$http.get (url) → (ptr, err)`","#,
            r#""fix":{"description":"`$http.fetch` → `$http.get`","certainty":"safe","#,
            r#""edits":[{"start":18,"end":29,"text":"$http.get"}]}}"#
        )
    );
}

fn shown(diagnostic: &Diagnostic, source: &str) -> String {
    diagnostic.render(source, |_, piece| piece.to_owned())
}

#[test]
fn a_rendered_diagnostic_underlines_its_range() {
    let host = common::host();
    let source = "\t(call $dbg.lgo \"日本\")\n(i32.const 0)";
    assert_eq!(
        shown(&explain(source, &host).unwrap(), source),
        "error[unknown-function]: no host function `$dbg.lgo`\n --> line 1, column 8\n  1 |     \
         (call $dbg.lgo \"日本\")\n    |           ^^^^^^^^\nhint: nearest: `$dbg.log \
         (ptr)`\nfix: `$dbg.lgo` → `$dbg.log`\n  1 -     (call $dbg.lgo \"日本\")\n  1 +     \
         (call $dbg.log \"日本\")\n"
    );
    let source = "(resv \"日本\") (drop\n  (call $dbg.log\n    \"x\"))\n(i32.const 0)";
    assert_eq!(
        shown(&explain(source, &host).unwrap(), source),
        "error[operand-count]: `drop` takes 1 operand, found 0\n --> line 1, column 13\n  1 | \
         (resv \"日本\") (drop\n    |               ^^^^^\n  2 |   (call $dbg.log\n    |   \
         ^^^^^^^^^^^^^^\n  3 |     \"x\"))\n    |     ^^^^^\n"
    );
}

#[test]
fn all_faults_are_found() {
    let host = common::host();
    let source = "(argv 0 $u)\n(call $telegram.send (local.get $u))\n(local $e i32) (local $p \
                  i32)\n(local.set $e)\n(call $http.fetch (local.get $u))\n(local.set $e) \
                  (local.set $p)\n(resv (i32.frob (local.get $u)))\n(drop (i64.add (i64.const 1) \
                  (i32.const 1)))\n(resv $p)";
    let found: Vec<_> =
        check(source, &host, 10).iter().map(|fault| (fault.code, fault.position.line)).collect();
    assert_eq!(
        found,
        [
            ("unknown-function", 2),
            ("unknown-function", 5),
            ("unknown-instruction", 7),
            ("operand-type", 8)
        ]
    );
    assert_eq!(check(source, &host, 2).len(), 2);
    assert_eq!(check("(resv \"x\")", &host, 10), []);
}

#[test]
fn an_access_to_the_length_of_a_string_is_a_warning() {
    let host = common::host();
    let warnings = |access: &str| {
        let source = format!("(let $s (arg 0)) (let $i 0)\n(out (fmt \"{{}}\" {access}))");
        let program = assemble(&source, &host).unwrap_or_else(|e| panic!("{source}\n{e}"));
        program.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    for access in [
        "(i32.load8_u (+ $s $i))",
        "(i32.load8_u (+ $i $s))",
        "(i32.load8_u (+ $s 3))",
        "(i32.load8_u (+ (+ $s $i) 1))",
        "(i32.load8_u (i32.add (local.get $s) (local.get $i)))",
        "(i32.load8_u (i32.add (local.get $s) (i32.const 1)))",
        "(i32.load16_u (i32.add $s (i32.mul (local.get $i) (i32.const 2))))",
        "(i32.load8_u offset=0 (+ $s $i))",
        "(i32.load8_u offset=1 (+ $s $i))",
    ] {
        assert_eq!(warnings(access), ["address-of-length"], "{access}");
    }
    for access in [
        "(i32.load $s)",
        "(i32.load8_u offset=4 (+ $s $i))",
        "(i32.load8_u offset=4 (i32.add (local.get $s) (local.get $i)))",
        "(i32.load8_u (+ $s 4))",
        "(i32.load8_u (+ (+ $s 4) $i))",
        "(i32.load8_u (+ $s (+ $i 4)))",
        "(i32.load8_u (i32.add (i32.add (local.get $s) (i32.const 4)) (local.get $i)))",
    ] {
        assert_eq!(warnings(access), [""; 0], "{access}");
    }
}
