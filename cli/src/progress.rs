//! The live view of a run: events as lines for a person.
//!
//! Every text that a model or a program wrote is bounded, and made harmless for a terminal.

use std::fmt::Write;

use anstyle::Style;
use wattle_agent::machine::{Action, Event, Source, Stop, read};

use crate::output::{BAD, DIM, GOOD, NAME, WARN, paint, visible};

/// How wide a line of a text is shown, in characters.
const WIDTH: usize = 160;
/// The most bytes that are kept of what the model says, to show its program.
const HEARD: usize = 1 << 20;

/// Turns the events of one run into lines. It keeps the model's words of the step, because events carry no program text.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    verbose: bool,
    step: u32,
    heard: String,
}

impl Progress {
    /// A view that shows programs and outputs in full where `verbose`.
    pub(crate) fn new(verbose: bool) -> Progress {
        Progress { verbose, ..Progress::default() }
    }

    /// The lines that tell of an event; none for an event that shows nothing by itself.
    pub(crate) fn lines(&mut self, event: &Event) -> Option<String> {
        let mut lines = String::new();
        match event {
            Event::Delta { text, .. } => {
                if self.heard.len() < HEARD {
                    self.heard.push_str(text);
                }
                return None;
            }
            Event::Thinking { step, content } => {
                self.heading(&mut lines, *step);
                block(&mut lines, DIM, "think", content, self.bound(3));
            }
            Event::ToolStart { step, label, source, description, .. } => {
                self.heading(&mut lines, *step);
                self.call(&mut lines, label, *source, description);
            }
            Event::ToolResult { success, output, dur_ms, .. } => {
                let (style, word) = if *success { (GOOD, "ok") } else { (BAD, "failed") };
                let _ = writeln!(lines, "  {} {dur_ms} ms", tag(style, word));
                rows(&mut lines, output, self.bound(8));
            }
            Event::Retry { step, attempt, error } => {
                self.heading(&mut lines, *step);
                self.heard.clear();
                block(&mut lines, WARN, "repair", &format!("attempt {attempt}: {error}"), self.bound(8));
            }
            Event::Response { steps, usage, stop, .. } => {
                let ended = match stop {
                    Stop::Answered => "answered",
                    Stop::MaxSteps => "stopped at its last step",
                    Stop::Timeout => "stopped by its timeout",
                    Stop::Cancelled => "cancelled",
                };
                let steps = if *steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
                let tokens = match usage.prompt + usage.completion {
                    0 => String::new(),
                    _ => format!(", {} + {} tokens", usage.prompt, usage.completion),
                };
                let _ = write!(lines, "{}", paint(DIM, &format!("{ended} after {steps}{tokens}")));
            }
            // Whoever started the run tells of its failure.
            Event::Error { .. } => return None,
        }
        Some(lines.trim_end().to_owned())
    }

    fn heading(&mut self, lines: &mut String, step: u32) {
        if self.step != step {
            self.step = step;
            let _ = writeln!(lines, "{}", paint(NAME, &format!("step {step}")));
        }
    }

    /// The program or call, from the model's own words where they came.
    fn call(&mut self, lines: &mut String, label: &str, source: Source, description: &str) {
        let said = std::mem::take(&mut self.heard);
        match (source, read(&said).action) {
            (Source::Wat, Action::Wat { body, args }) => {
                let count = body.lines().count();
                let args = if args.is_empty() { String::new() } else { format!(" with {}", quoted(&args)) };
                let _ = writeln!(lines, "  {} a program of {count} lines{args}", tag(NAME, "run"));
                rows(lines, &body, self.bound(12));
            }
            (Source::Catalog, Action::Catalog { name, args }) if name == label => {
                let _ = writeln!(lines, "  {} {}({})", tag(NAME, "run"), visible(label), quoted(&args));
            }
            _ => block(lines, NAME, "run", &format!("{label} {description}"), 1),
        }
    }

    fn bound(&self, lines: usize) -> usize {
        if self.verbose { usize::MAX } else { lines }
    }
}

/// Arguments between quotes, each cut to a readable length.
fn quoted(args: &[String]) -> String {
    let one = |arg: &String| format!("{:?}", cut(arg, 60));
    args.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn tag(style: Style, word: &str) -> String {
    paint(style, &format!("{word:<7}"))
}

/// A text behind a tag, its further lines below.
fn block(lines: &mut String, style: Style, word: &str, text: &str, bound: usize) {
    let text = visible(text.trim());
    let mut rows = text.lines();
    let _ = writeln!(lines, "  {} {}", tag(style, word), cut(rows.next().unwrap_or_default(), WIDTH));
    let rest = rows.clone().count();
    rows.take(bound.saturating_sub(1)).for_each(|row| {
        let _ = writeln!(lines, "          {}", cut(row, WIDTH));
    });
    more(lines, rest.saturating_sub(bound.saturating_sub(1)));
}

/// A text below a tag, each line behind a bar.
fn rows(lines: &mut String, text: &str, bound: usize) {
    let text = visible(text.trim_end());
    let count = text.lines().count();
    for row in text.lines().take(bound) {
        let _ = writeln!(lines, "          {} {}", paint(DIM, "|"), cut(row, WIDTH));
    }
    more(lines, count.saturating_sub(bound));
}

fn more(lines: &mut String, count: usize) {
    if count > 0 {
        let _ = writeln!(lines, "          {}", paint(DIM, &format!("… {count} more lines")));
    }
}

/// The beginning of a line.
fn cut(line: &str, width: usize) -> String {
    match line.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
