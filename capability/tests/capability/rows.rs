//! Tests the results of calls to host functions. Each line of `rows/*.txt` contains a call and its
//! expected result.
//!
//! ```text
//! (str.upper? "a") = A                    a string expression, and its value
//! int (str.len "a") = 1                   a number expression
//! arr (str.split? "a b" " ") = ["a","b"]  an array expression, and its value as JSON
//! run (out "a") (out "b") = "a\nb"        a whole program; quoted results are JSON strings
//! (str.slice? "a" 2 1) ! EBOUND the end   a failure: its code, which the program returns or traps
//!                                         with, and a part of its reason
//! ```

use wattle_rt::{Code, Exit, Outcome, TrapKind};

use crate::world::World;

/// Parses a line. Returns the program and its expected result.
fn read(line: &str) -> (String, Result<String, (Code, &str)>) {
    let (kind, rest) = match line.split_once(' ') {
        Some((kind @ ("int" | "arr" | "run"), rest)) => (kind, rest),
        _ => ("text", line),
    };
    // The expression ends at the last closing parenthesis before ` = ` or ` ! `.
    let at = rest.rmatch_indices(") = ").chain(rest.rmatch_indices(") ! ")).map(|(at, _)| at).min();
    let at = at
        .or_else(|| rest.ends_with(") =").then(|| rest.len() - 3))
        .unwrap_or_else(|| panic!("{line}"));
    let (expression, expected) = rest.split_at(at + 1);
    let program = match kind {
        "int" => format!("(ret (str.from_int {expression}))"),
        "arr" => format!("(ret (arr.to_json? {expression}))"),
        "run" => expression.to_owned(),
        _ => format!("(ret {expression})"),
    };
    let expected = match expected.trim_start().split_once(' ') {
        Some(("!", words)) => {
            let (code, words) = words.split_once(' ').unwrap_or((words, ""));
            Err((Code::from_name(code).unwrap_or_else(|| panic!("{line}")), words))
        }
        Some((_, text))
            if text.starts_with('"') && kind != "arr" && !line.starts_with("(str.json_encode") =>
        {
            Ok(serde_json::from_str(text).unwrap_or_else(|_| panic!("{line}")))
        }
        Some((_, text)) => Ok(text.to_owned()),
        None => Ok(String::new()),
    };
    (program, expected)
}

fn holds(outcome: &Outcome, expected: &Result<String, (Code, &str)>) -> bool {
    match expected {
        Ok(text) => outcome.success() && outcome.texts().join("\n") == *text,
        Err((code, words)) => {
            // A function without error codes traps.
            let trapped =
                matches!(&outcome.exit, Exit::Trapped(trap) if trap.kind == TrapKind::Host(*code));
            (trapped || outcome.exit == Exit::Returned(*code))
                && outcome
                    .failure
                    .as_ref()
                    .is_some_and(|failed| failed.failure.reason.contains(words))
        }
    }
}

async fn check(lines: &str) {
    let mut wrong = Vec::new();
    let world = World::new();
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (program, expected) = read(line);
        match world.run(&program, &[]).await {
            Ok(outcome) if holds(&outcome, &expected) => {}
            Ok(Outcome { exit, failure, results, .. }) => {
                let results: Vec<_> = results.iter().map(|r| String::from_utf8_lossy(r)).collect();
                wrong.push(format!("{line}\n  gave {results:?} {exit:?} {failure:?}"));
            }
            Err(why) => wrong.push(format!("{line}\n  {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn str_functions_return_the_expected_results() {
    check(include_str!("../rows/str.txt")).await;
}

#[tokio::test]
async fn arr_functions_return_the_expected_results() {
    check(include_str!("../rows/arr.txt")).await;
}

#[tokio::test]
async fn map_functions_return_the_expected_results() {
    check(include_str!("../rows/map.txt")).await;
}

#[tokio::test]
async fn val_functions_return_the_expected_results() {
    check(include_str!("../rows/val.txt")).await;
}

#[tokio::test]
async fn json_functions_return_the_expected_results() {
    check(include_str!("../rows/json.txt")).await;
}

#[tokio::test]
async fn date_functions_return_the_expected_results() {
    check(include_str!("../rows/date.txt")).await;
}

#[tokio::test]
async fn math_functions_return_the_expected_results() {
    check(include_str!("../rows/math.txt")).await;
}

#[tokio::test]
async fn url_functions_return_the_expected_results() {
    check(include_str!("../rows/url.txt")).await;
}

#[tokio::test]
async fn html_functions_return_the_expected_results() {
    check(include_str!("../rows/html.txt")).await;
}
