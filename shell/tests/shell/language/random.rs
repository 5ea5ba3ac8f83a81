//! Tests that run random scripts.

use std::time::Duration;

use proptest::prelude::*;

use super::{run, text};

/// Strings from which random scripts are built.
const PIECES: &[&str] = &[
    "echo",
    "a",
    "b=1",
    "c=(x y)",
    "c[1]=2",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "{",
    "}",
    "((",
    "))",
    "[[",
    "]]",
    "$x",
    "${c[@]}",
    "${#x}",
    "${x:-",
    "${x//a/",
    "${x%%",
    "$(",
    "`",
    "$((",
    "'",
    "\"",
    "\\",
    "<",
    ">",
    "<<E",
    "\nE\n",
    "<<<",
    "2>&1",
    ">&-",
    "&>",
    "<(",
    "/dev/null",
    "if",
    "then",
    "else",
    "fi",
    "for i in",
    "do",
    "done",
    "while",
    "until",
    "case x in",
    "esac",
    ";;",
    "function f",
    "f()",
    "f",
    "return",
    "break",
    "continue 2",
    "exit",
    "local",
    "declare -A m",
    "m[k]=v",
    "export",
    "unset",
    "read x",
    "printf '%5s%d'",
    "test",
    "[",
    "]",
    "-eq",
    "=~",
    "==",
    "*",
    "?",
    "[a-z]",
    "!(a|b)",
    "{1..3}",
    "{a,b",
    "~",
    "$@",
    "$*",
    "$#",
    "$?",
    "$!",
    "é",
    "\0",
    "\t",
    "set -e",
    "set -- 1 2",
    "shift",
    "trap f EXIT",
    "eval",
    "let x+=1",
    "wait",
    "jobs",
    "kill %1",
    "getopts ab: o",
    "mapfile",
    "select s in a",
    "time",
    "x[9223372036854775807]=1",
    "1/0",
    "-9223372036854775808",
    "shopt -s extglob",
    "cd /",
    "pushd /",
    "sh -c",
    "source /dev/stdin",
    "exec",
    "9>",
    "99999999999>",
];

fn any_script() -> impl Strategy<Value = String> {
    let pieces = proptest::collection::vec(proptest::sample::select(PIECES), 0..24)
        .prop_map(|pieces| pieces.concat());
    let spaced = proptest::collection::vec(proptest::sample::select(PIECES), 0..24)
        .prop_map(|pieces| pieces.join(" "));
    prop_oneof![2 => pieces, 3 => spaced, 1 => "\\PC{0,60}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Tests that every script ends in time and does not panic.
    #[test]
    fn every_script_ends(script in any_script()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let output = runtime.block_on(async {
            tokio::time::timeout(
                Duration::from_secs(20),
                run(&script, Duration::from_millis(50)),
            )
            .await
        });
        let output = output.map_err(|_| TestCaseError::fail("the script does not end"))?;
        prop_assert!(!text(&output.stderr).contains("bug in the host"), "{}", text(&output.stderr));
    }
}
