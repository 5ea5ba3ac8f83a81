//! Tests of programs that are valid although they use syntax from other languages or from the first
//! edition of this language. The programs are in `tests/accepted.txt`.

use crate::common;

#[test]
fn spellings_of_other_languages_are_accepted() {
    let host = common::host();
    let text = wattle_cases::read("tests/accepted.txt");
    let cases = wattle_cases::split(&text).1;
    assert!(cases.len() >= 40, "{} programs", cases.len());
    for case in cases {
        let source = case.input.trim_end();
        let program =
            wattle_lang::assemble(source, &host).unwrap_or_else(|e| panic!("{}: {e}", case.title));
        let binary = program.encode().unwrap_or_else(|e| panic!("{}: {e}", case.title));
        if let Err(e) = wasmparser::Validator::new().validate_all(&binary) {
            panic!("{}: {e}\n{}", case.title, program.module);
        }
    }
}
