//! Renders the lines of a run's live view.

use std::fmt::{Display, Write};

use anstyle::Style;
use wattle_agent::host::machine::{Stop, Usage};

use super::step::{Step, StepResult};
use crate::output::width::{fit, layout, width};
use crate::output::{BAD, DIM, GOOD, WARN, highlight, is_live, paint, visible};

/// The indentation of the lines below a step's line.
const INDENT: &str = "     ";
/// Maximum number of output lines printed per call.
const SHOWN: usize = 3;
/// Maximum width of an argument, in columns.
const ARGUMENT: usize = 40;

/// Width of the view in columns if there is no terminal.
const OFF_TERMINAL: usize = 160;

/// Returns the width of the view, in columns.
fn room() -> usize {
    if is_live() { layout() } else { OFF_TERMINAL }
}

/// Renders a step's call on one line: `csv_to_json("sales.csv")`, or `program, 5 lines`.
pub(super) fn call(step: &Step) -> String {
    let quoted = |arg: &String| format!("{:?}", visible(&fit(arg, ARGUMENT)));
    let args = step.args.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let Some(body) = &step.body else { return format!("{}({args})", visible(&step.label)) };
    let lines = counted(body.trim().lines().count(), "line");
    if args.is_empty() { format!("program, {lines}") } else { format!("program({args}), {lines}") }
}

/// Renders a call that has ended: its first line, and the first lines of its output.
pub(super) fn ended(step: &Step, result: &StepResult, verbose: bool) -> String {
    let mut notes: Vec<String> = Vec::new();
    if !step.repairs.is_empty() {
        notes.push(format!("repaired {}", step.repairs.len()));
    }
    if !result.success {
        notes.push(match result.exit_code {
            Some(code) => format!("failed with {code}"),
            None => "failed".to_owned(),
        });
    }
    notes.push(time(result.dur_ms));
    let style = if result.success { GOOD } else { BAD };
    let mut lines = head(style, step, &notes.join(" · "));
    for fix in &result.fixes {
        let _ = writeln!(lines, "{INDENT}{} {}", paint(WARN, "fixed"), below(fix, 6));
    }
    if verbose {
        let body = step.body.as_deref().unwrap_or_default().trim_end();
        for line in highlight::program(body).lines() {
            let _ = writeln!(lines, "{INDENT}{} {line}", paint(DIM, "|"));
        }
    }
    lines + &output(&result.output, verbose)
}

/// Renders the first line of a call: its number, its program, and notes at the right margin.
fn head(style: Style, step: &Step, notes: &str) -> String {
    let number = match step.call {
        0 | 1 => step.step.to_string(),
        call => format!("{}.{call}", step.step),
    };
    let prefix = format!("{number:<3}");
    let room = room().saturating_sub(width(&prefix) + 2 + 2 + width(notes));
    let what = fit(&call(step), room.max(12));
    // Without a terminal, there is no margin.
    let gap = if is_live() { room.saturating_sub(width(&what)) } else { 0 };
    format!("{} {prefix}{what}{}  {}\n", paint(style, "●"), " ".repeat(gap), paint(DIM, notes))
}

/// Renders the first lines of an output, or all lines if `verbose` is true. If lines are omitted,
/// also renders the output's total number of lines and its total size.
fn output(text: &str, verbose: bool) -> String {
    let text = visible(text.trim_end());
    let (count, bytes) = (text.lines().count(), text.len());
    let bound = if verbose { usize::MAX } else { SHOWN };
    let mut lines = String::new();
    for (at, line) in text.lines().take(bound).enumerate() {
        let rest = if at + 1 == SHOWN && count > bound {
            format!("  … {} in all, {}", counted(count, "line"), size(bytes as u64))
        } else {
            String::new()
        };
        let shown = if verbose { line.to_owned() } else { below(line, width(&rest)) };
        let _ = writeln!(lines, "{INDENT}{shown}{}", paint(DIM, &rest));
    }
    lines
}

/// Renders the model's reason for a step, on one line unless `verbose` is true.
pub(super) fn thought(content: &str, verbose: bool) -> String {
    let text = visible(content.trim());
    if !verbose {
        return format!("  {}\n", paint(DIM, &fit(&text, room().saturating_sub(2))));
    }
    text.lines().fold(String::new(), |lines, line| lines + &format!("  {}\n", paint(DIM, line)))
}

/// Renders a note about a run: a styled word and a string. The string is shortened to one line
/// unless `verbose` is true.
pub(super) fn note(style: Style, word: &str, text: &str, verbose: bool) -> String {
    let text = visible(text.trim());
    let text = if verbose { text } else { below(&text, width(word)) };
    format!("  {} {text}\n", paint(style, word))
}

/// Shortens a string to fit on an indented line below a step. `used` columns of that line are
/// reserved.
fn below(text: &str, used: usize) -> String {
    let room = room().saturating_sub(INDENT.len() + used);
    fit(&visible(text.lines().next().unwrap_or_default()), room.max(8))
}

/// Describes the end of a run.
pub(crate) fn ending(stop: Stop) -> &'static str {
    match stop {
        Stop::Answered => "answered",
        Stop::MaxSteps => "stopped at its last step",
        Stop::Timeout => "stopped by its timeout",
        Stop::Cancelled => "cancelled",
        Stop::MaxTokens => "stopped by its bound on tokens",
        Stop::MaxCost => "stopped by its bound on cost",
        Stop::Repeated => "stopped, because it repeated the same call",
        Stop::Blocked => "blocked",
        Stop::Truncated => "cut off",
        Stop::InvalidOutput => "answered, but the answer does not match its schema",
    }
}

/// Renders the token usage and the cost: `4,210 tokens (3,900 cached) · $0.004`. Returns `None` if
/// no tokens were used.
pub(crate) fn spent(usage: Usage) -> Option<String> {
    let cached = match usage.cached {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    let cost = usage.cost.map(|cost| format!(" · {cost}")).unwrap_or_default();
    (usage.total() > 0).then(|| format!("{} tokens{cached}{cost}", grouped(usage.total())))
}

/// Renders a number in groups of three digits: `4,210`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Renders a duration: `4 ms`, `3.1 s`, `2 min 5 s`.
pub(crate) fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// Renders a size: `512 B`, `6.1 kB`, `2.0 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Renders a count with its noun: `1 line`, `2 lines`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!(
            (grouped(7), grouped(4210), grouped(1_234_567)),
            ("7".into(), "4,210".into(), "1,234,567".into())
        );
        assert_eq!(
            (time(4), time(3_140), time(125_000)),
            ("4 ms".into(), "3.1 s".into(), "2 min 5 s".into())
        );
        assert_eq!(
            (size(9), size(6_150), size(2_000_000)),
            ("9 B".into(), "6.1 kB".into(), "2.0 MB".into())
        );
    }

    #[test]
    fn a_long_output_is_cut_and_counted() {
        let shown = output("a\nb\nc\nd\n", false);
        assert!(shown.contains("4 lines in all") && !shown.contains("d\n"), "{shown}");
        assert!(!output("a\nb\nc", false).contains("in all"));
        assert!(output("a\nb\nc\nd", true).contains("     d"));
    }
}
