//! Tests that offsets in a module are mapped to the right lines of the source.

use wasmparser::{Operator, Parser, Payload};
use wattle_lang::{Position, assemble, locate};

use crate::common;

/// Returns the source line of each operator for which `wanted` returns true, in the order of the
/// operators.
fn lines(source: &str, wanted: impl Fn(&Operator<'_>) -> bool) -> Vec<u32> {
    let host = common::host();
    let binary = assemble(source, &host).unwrap().encode().unwrap();
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(&binary) {
        let Payload::CodeSectionEntry(body) = payload.unwrap() else { continue };
        for operator in body.get_operators_reader().unwrap().into_iter_with_offsets() {
            let (operator, offset) = operator.unwrap();
            if wanted(&operator) {
                let span = locate(source, &host, offset).unwrap();
                found.push(Position::of(source, span.start as usize).line);
            }
        }
    }
    found
}

#[test]
fn instructions_are_located_at_their_lines() {
    let source = "(argv 0 $p)\n\n(resv\n  (call $str.from_int\n    (i32.div_s (i32.const 1)\n      \
         (i32.const 0))))\nunreachable\n";
    assert_eq!(lines(source, |op| matches!(op, Operator::I32DivS)), [5]);
    assert_eq!(lines(source, |op| matches!(op, Operator::Unreachable)), [7]);
    assert_eq!(lines(source, |op| matches!(op, Operator::Call { .. })), [1, 4, 3]);
}

#[test]
fn macros_and_helpers_are_located_at_their_lines() {
    let source = "\
;; a comment
(func $half (param $n i32) (result i32)
  (check (call $kv.set \"k\"
    \"v\"))
  (i32.div_s (i32.const 2) (local.get $n)))
(local $x i32)
(argv 0 $p) (argv 1
  $q)
(check $x)
local.get $x
call $half
drop
(i32.load (i32.const -1))
";
    assert_eq!(lines(source, |op| matches!(op, Operator::I32DivS)), [5]);
    assert_eq!(lines(source, |op| matches!(op, Operator::I32Load { .. })), [13]);
    assert_eq!(lines(source, |op| matches!(op, Operator::If { .. })), [3, 7, 7, 9]);
    assert_eq!(lines(source, |op| matches!(op, Operator::Call { .. })), [3, 7, 7, 11]);
    assert_eq!(lines(source, |op| matches!(op, Operator::Drop)), [12]);
}

#[test]
fn offsets_outside_code_have_no_position() {
    let (source, host) = ("(i32.const 0)", common::host());
    assert_eq!(locate(source, &host, 0), None);
    assert_eq!(locate(source, &host, 1 << 40), None);
    assert_eq!(locate("(i32.const", &host, 40), None);
}
