//! The live view of a run, which prints its events for a user.
//!
//! Texts of models and programs are truncated, and their control characters are made visible.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use anstyle::Style;
use wattle_agent::machine::{Event, Stop, Usage, Verdict};
use wattle_agent::rt::truncate;

use crate::output::{self, BAD, DIM, GOOD, NAME, WARN, paint, visible};

/// Maximum length of a line, in characters.
const WIDTH: usize = 160;

/// The live view of one run on stderr.
#[derive(Debug)]
pub(crate) struct Live(Mutex<Progress>);

impl Live {
    /// Creates a view. If `verbose` is true, it shows programs and outputs in full.
    pub(crate) fn new(verbose: bool) -> Live {
        Live(Mutex::new(Progress { verbose, step: 0 }))
    }

    /// Shows an event.
    pub(crate) fn show(&self, event: &Event) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = progress.lines(event) {
            output::note(&lines);
        }
    }
}

/// The state that turns the events of one run into lines.
#[derive(Debug)]
struct Progress {
    verbose: bool,
    step: u32,
}

impl Progress {
    /// Returns the lines for an event, or `None` for an event without lines.
    fn lines(&mut self, event: &Event) -> Option<String> {
        let mut lines = String::new();
        match event {
            Event::Thinking { step, content } => {
                self.heading(&mut lines, *step);
                block(&mut lines, DIM, "think", content, self.bound(3));
            }
            Event::ToolStart { step, label, body, args, .. } => {
                self.heading(&mut lines, *step);
                self.call(&mut lines, label, body.as_deref(), args);
            }
            Event::ToolResult { success, output, dur_ms, fixes, .. } => {
                let (style, word) = if *success { (GOOD, "ok") } else { (BAD, "failed") };
                if !fixes.is_empty() {
                    block(&mut lines, WARN, "fixed", &fixes.join("\n"), self.bound(8));
                }
                let _ = writeln!(lines, "  {} {dur_ms} ms", tag(style, word));
                rows(&mut lines, output, self.bound(8));
            }
            Event::Retry { step, attempt, error } => {
                self.heading(&mut lines, *step);
                block(
                    &mut lines,
                    WARN,
                    "repair",
                    &format!("attempt {attempt}: {error}"),
                    self.bound(8),
                );
            }
            Event::Response { steps, usage, stop, .. } => {
                let ended = match stop {
                    Stop::Answered => "answered",
                    Stop::MaxSteps => "stopped at its last step",
                    Stop::Timeout => "stopped by its timeout",
                    Stop::Cancelled => "cancelled",
                    Stop::MaxTokens => "stopped by its bound on tokens",
                    Stop::MaxCost => "stopped by its bound on cost",
                    Stop::Repeated => "stopped in a circle",
                    Stop::Blocked => "not let through",
                    Stop::Truncated => "cut off",
                };
                let steps = counted(*steps as usize, "step");
                let spent = spent(*usage).map(|spent| format!(", {spent}")).unwrap_or_default();
                let _ = write!(lines, "{}", paint(DIM, &format!("{ended} after {steps}{spent}")));
            }
            Event::Moderated { verdict } => {
                let (style, what) = match verdict {
                    Verdict::Allowed => return None,
                    Verdict::Blocked { category, .. } => (BAD, format!("blocked: {category}")),
                    Verdict::Failed { reason, is_allowed: true, .. } => {
                        (WARN, format!("let through unchecked: {reason}"))
                    }
                    Verdict::Failed { reason, .. } => (BAD, reason.clone()),
                };
                block(&mut lines, style, "guard", &what, self.bound(3));
            }
            Event::Parked { call, question } => {
                block(
                    &mut lines,
                    WARN,
                    "waits",
                    &format!("call {call}: {question}"),
                    self.bound(8),
                );
            }
            // The thought and the call already show the text of an answer, and the command itself
            // reports the error.
            Event::Delta { .. } | Event::Error { .. } => return None,
        }
        Some(lines.trim_end().to_owned())
    }

    fn heading(&mut self, lines: &mut String, step: u32) {
        if self.step != step {
            self.step = step;
            let _ = writeln!(lines, "{}", paint(NAME, &format!("step {step}")));
        }
    }

    /// Renders the call of an inline program or of a catalog program.
    fn call(&self, lines: &mut String, label: &str, body: Option<&str>, args: &[String]) {
        let args = quoted(args);
        let what = match body {
            None => format!("{}({args})", visible(label)),
            Some(body) if args.is_empty() => {
                format!("a program of {}", counted(body.lines().count(), "line"))
            }
            Some(body) => {
                format!("a program of {} with {args}", counted(body.lines().count(), "line"))
            }
        };
        let _ = writeln!(lines, "  {} {}", tag(NAME, "run"), truncate(&what, WIDTH));
        rows(lines, body.unwrap_or_default(), self.bound(12));
    }

    fn bound(&self, lines: usize) -> usize {
        if self.verbose { usize::MAX } else { lines }
    }
}

/// Renders tokens and their cost. Returns `None` if there are no tokens.
pub(crate) fn spent(usage: Usage) -> Option<String> {
    let cost = usage.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    (usage.total() > 0).then(|| format!("{} + {} tokens{cost}", usage.prompt, usage.completion))
}

/// Renders a count with its noun: `1 line`, `2 lines`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Renders arguments in quotes, truncated to a readable length.
fn quoted(args: &[String]) -> String {
    let one = |arg: &String| format!("{:?}", visible(&truncate(arg, 60)));
    args.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn tag(style: Style, word: &str) -> String {
    paint(style, &format!("{word:<7}"))
}

/// Renders a text after a tag, with its further lines below.
fn block(lines: &mut String, style: Style, word: &str, text: &str, bound: usize) {
    let text = visible(text.trim());
    let mut rows = text.lines();
    let _ = writeln!(
        lines,
        "  {} {}",
        tag(style, word),
        truncate(rows.next().unwrap_or_default(), WIDTH)
    );
    let rest = rows.clone().count();
    rows.take(bound.saturating_sub(1)).for_each(|row| {
        let _ = writeln!(lines, "          {}", truncate(row, WIDTH));
    });
    more(lines, rest.saturating_sub(bound.saturating_sub(1)));
}

/// Renders a text below a tag, each line after a bar.
fn rows(lines: &mut String, text: &str, bound: usize) {
    let text = visible(text.trim_end());
    let count = text.lines().count();
    for row in text.lines().take(bound) {
        let _ = writeln!(lines, "          {} {}", paint(DIM, "|"), truncate(row, WIDTH));
    }
    more(lines, count.saturating_sub(bound));
}

fn more(lines: &mut String, count: usize) {
    if count > 0 {
        let _ = writeln!(
            lines,
            "          {}",
            paint(DIM, &format!("… {} more", counted(count, "line")))
        );
    }
}
