//! Tests that diagnosing a program takes time proportional to the length of its source.

use std::time::{Duration, Instant};

use crate::common;

/// Returns the source of a function that is never called.
fn func(at: usize, body: &str) -> String {
    format!("(func $f{at} {body})\n")
}

/// Covers programs for which a naive diagnosis would take more than linear time.
#[test]
fn diagnosing_takes_time_in_proportion_to_the_text() {
    let host = common::host();
    let infix = format!("({})", vec!["$a"; 40_000].join(" + "));
    let sums = format!("{}1{}", "(+ ".repeat(200), " 1)".repeat(200));
    let dots = format!("$.{} {}", ".".repeat(300_000), "(while 1 (break))".repeat(10_000));
    let texts = [
        ("bad forms", "(foo 1)\n".repeat(90_000)),
        ("bad functions", (0..900).map(|at| func(at, "(foo)")).collect()),
        ("calls of another language", "a(b) c.d(e) ".repeat(50_000)),
        ("operators between", infix),
        ("sums", format!("(drop {sums})").repeat(400)),
        ("one long name", dots),
        (
            "deep lines",
            format!("{}{}{}", "(block ".repeat(250), "nop\n".repeat(150_000), ")".repeat(250)),
        ),
        ("joined texts", format!("(local $s i32) (drop (str.cat {}))", "$s ".repeat(50_000))),
        ("loops", "(while 1 (break))".repeat(50_000)),
        (
            "wide types",
            format!("(type $t (func (param {})))", "i32 ".repeat(100_000))
                + &"(block (type $t))".repeat(10_000),
        ),
        (
            "many results",
            format!("(func $f (result {}) unreachable)", "i32 ".repeat(1_000))
                + &"(call $f)".repeat(50_000),
        ),
    ];
    for (name, text) in texts {
        let started = Instant::now();
        assert!(wattle_lang::explain(&text, &host).is_some(), "{name}");
        assert!(!wattle_lang::check(&text, &host, 4).is_empty(), "{name}");
        let fixed = wattle_lang::fix(&text, &host);
        assert!(fixed.rest.is_some() || fixed.source != text, "{name}");
        assert!(started.elapsed() < Duration::from_secs(60), "{name} took {:?}", started.elapsed());
    }
}
