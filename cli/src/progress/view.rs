//! Prints the events of a run.

use std::time::Instant;

use wattle_agent::host::machine::{Event, Stop, Usage, Verdict};

use super::RunView;
use super::answer::Answer;
use super::line::{self, counted, spent, time};
use super::step::{Step, StepResult};
use crate::fault::Fault;
use crate::output::width::{columns, fit, join, rows, width};
use crate::output::{self, BAD, DIM, NAME, WARN, paint, visible};

/// The frames of the spinner.
const FRAMES: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Maximum number of lines of an unfinished block that are shown.
const MOST_LINES: usize = 16;

/// The kind of command that shows the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A command that prints the answer itself.
    Command,
    /// A command. The view prints the answer to stdout while the model writes it.
    Answer,
    /// An interactive session. The view prints the answer to stdout. The session has commands that
    /// show more about the run.
    Session,
}

/// The state of a live view, which each event of the run updates.
pub(super) struct View {
    mode: Mode,
    verbose: bool,
    started: Instant,
    /// The time at which the current wait began, and the run's current step.
    waiting: (Instant, u32),
    /// The model's incomplete text.
    draft: String,
    thought: String,
    /// The parts of the next thought so far, joined.
    thinking: String,
    repairs: Vec<String>,
    answer: Answer,
    frame: usize,
    has_ended: bool,
    /// A summary of the events that have been shown.
    pub(super) record: RunView,
    /// The error that occurred while writing to stdout. Nothing is printed to stdout after an
    /// error.
    pub(super) fault: Option<Fault>,
}

impl View {
    /// Creates the view of a run and starts the clock that measures the run's duration.
    pub(super) fn new(mode: Mode, verbose: bool) -> View {
        let now = Instant::now();
        View {
            mode,
            verbose,
            started: now,
            waiting: (now, 0),
            draft: String::new(),
            thought: String::new(),
            thinking: String::new(),
            repairs: Vec::new(),
            answer: Answer::default(),
            frame: 0,
            has_ended: false,
            record: RunView::default(),
            fault: None,
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &Event) {
        let lines = self.lines(event);
        if !lines.is_empty() {
            output::note(lines.trim_end_matches('\n'));
        }
        if let Event::Response { text, steps, usage, stop, data, .. } = event {
            self.end();
            // A typed answer is printed in another form, by the command.
            if data.is_none() {
                self.respond(text, *stop);
            }
            self.summarize(*stop, *steps, *usage);
        }
    }

    /// Updates the view with an event and returns the lines to print.
    fn lines(&mut self, event: &Event) -> String {
        match event {
            Event::Delta { step, text } => {
                self.waiting.1 = *step;
                self.draft.push_str(text);
            }
            Event::ThoughtDelta { step, text } => {
                self.waiting.1 = *step;
                self.thinking.push_str(text);
            }
            Event::AnswerDelta { step, text, .. } => {
                self.waiting.1 = *step;
                // The thought is shown before the answer, and the event with it comes later.
                let thought = std::mem::take(&mut self.thinking);
                if self.prints_answer() && !thought.trim().is_empty() {
                    thought.trim().clone_into(&mut self.thought);
                    output::note(line::thought(&self.thought, self.verbose).trim_end_matches('\n'));
                }
                // Without a screen, the answer is printed unchanged once it is complete.
                if self.prints_answer() && output::is_screen() {
                    let printed = self.answer.receive(text);
                    self.keep(printed);
                }
            }
            Event::AnswerVoid { .. } => self.answer.withdraw(),
            Event::Thinking { step, content } => {
                self.wait(*step);
                if std::mem::replace(&mut self.thought, content.clone()) != *content {
                    return line::thought(content, self.verbose);
                }
            }
            Event::ToolStart { step, call, label, body, args, .. } => {
                self.wait(*step);
                self.record.steps.push(Step {
                    step: *step,
                    call: *call,
                    label: label.clone(),
                    body: body.clone(),
                    args: args.clone(),
                    thought: std::mem::take(&mut self.thought),
                    repairs: std::mem::take(&mut self.repairs),
                    result: None,
                });
            }
            Event::ToolResult { step, call, success, output, exit_code, dur_ms, fixes, .. } => {
                self.wait(*step);
                let result = StepResult {
                    success: *success,
                    output: output.clone(),
                    exit_code: *exit_code,
                    dur_ms: *dur_ms,
                    fixes: fixes.clone(),
                };
                return self.ended(*step, *call, result);
            }
            Event::Retry { step, attempt, error, after_ms: Some(_) } => {
                self.wait(*step);
                let what = format!("waiting for the provider, retry {attempt}");
                return line::note(WARN, &what, error, self.verbose);
            }
            Event::Retry { step, attempt, error, after_ms: None } => {
                self.wait(*step);
                self.drop_failed(*step);
                self.repairs.push(error.clone());
                return line::note(WARN, &format!("repair {attempt}"), error, self.verbose);
            }
            Event::Moderated { verdict } => {
                let (style, what) = match verdict {
                    Verdict::Allowed => return String::new(),
                    Verdict::Blocked { category, .. } => (BAD, format!("blocked: {category}")),
                    Verdict::Failed { reason, is_allowed: true, .. } => {
                        (WARN, format!("allowed without a check: {reason}"))
                    }
                    Verdict::Failed { reason, .. } => (BAD, reason.clone()),
                };
                return line::note(style, "guard", &what, self.verbose);
            }
            Event::LeftOut { messages, .. } => {
                let what = format!(
                    "the oldest {messages} messages, which exceed the model's context window"
                );
                return line::note(WARN, "not sent", &what, self.verbose);
            }
            Event::Recalled { error: Some(why), .. } => {
                return line::note(WARN, "recall failed", why, self.verbose);
            }
            Event::Contributed { program, error: Some(why), .. } => {
                let what = format!("{program} failed");
                return line::note(WARN, &what, why, self.verbose);
            }
            Event::Recalled { error: None, .. }
            | Event::Contributed { error: None, .. }
            | Event::Artifact { .. } => {}
            Event::Parked { call, question } => {
                self.end();
                return line::note(WARN, "waits", &format!("call {call}: {question}"), true);
            }
            // The command itself reports the error.
            Event::Error { .. } => self.end(),
            Event::Response { .. } => {}
        }
        String::new()
    }

    /// Clears the draft and restarts the clock, because the run is now waiting for another model
    /// answer or program.
    fn wait(&mut self, step: u32) {
        self.draft.clear();
        self.thinking.clear();
        self.waiting = (Instant::now(), step);
    }

    /// Removes the call of a program that did not compile. Its repaired version is a new call.
    fn drop_failed(&mut self, step: u32) {
        let is_open = |last: &mut Step| last.step == step && last.result.is_none();
        if let Some(failed) = self.record.steps.pop_if(is_open) {
            self.thought = failed.thought;
            self.repairs = failed.repairs;
        }
    }

    fn ended(&mut self, step: u32, call: u32, result: StepResult) -> String {
        let mut started =
            self.record.steps.iter_mut().filter(|own| (own.step, own.call) == (step, call));
        let Some(started) = started.next_back() else {
            // The start of the call was shown by an earlier process.
            let step = Step { step, call, label: "resumed".to_owned(), ..Step::default() };
            return line::ended(&step, &result, self.verbose);
        };
        let lines = line::ended(started, &result, self.verbose);
        started.result = Some(result);
        lines
    }

    fn respond(&mut self, text: &str, stop: Stop) {
        if self.prints_answer() && stop != Stop::Cancelled && self.fault.is_none() {
            self.record.has_answer = true;
            let printed = if output::is_screen() {
                self.answer.complete(text)
            } else {
                output::text(&output::visible(text))
            };
            self.keep(printed);
        }
    }

    fn prints_answer(&self) -> bool {
        self.mode != Mode::Command
    }

    fn keep(&mut self, printed: Result<(), Fault>) {
        if let Err(fault) = printed {
            self.fault.get_or_insert(fault);
        }
    }

    /// Prints the run's ending, number of steps, duration, token usage and cost.
    fn summarize(&self, stop: Stop, steps: u32, usage: Usage) {
        let steps = counted(steps, "step");
        let mut parts = vec![match (self.mode, stop) {
            (Mode::Session, Stop::Answered) => steps,
            (_, stop) => format!("{} after {steps}", line::ending(stop)),
        }];
        parts.push(time(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)));
        parts.extend(spent(usage));
        if self.mode == Mode::Session && !self.record.steps.is_empty() {
            parts.push("/trace shows them".to_owned());
            let program = self.record.steps.iter().rev().find(|step| step.body.is_some());
            if let Some(program) = program {
                parts.push(format!("/source {} the program", program.step));
            }
        }
        for line in join(parts, " · ", columns().saturating_sub(2)) {
            output::note(&format!("  {}", paint(DIM, &line)));
        }
    }

    /// Ends the view and clears the line for the call in progress.
    pub(super) fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            output::clear_transient();
        }
    }

    /// Updates the line for the call in progress. Returns false if the view has ended.
    pub(super) fn tick(&mut self) -> bool {
        if self.has_ended {
            return false;
        }
        self.frame += 1;
        let frame = FRAMES.get(self.frame % FRAMES.len()).copied().unwrap_or_default();
        let (since, step) = self.waiting;
        let seconds = since.elapsed().as_secs();
        let running: Vec<&Step> =
            self.record.steps.iter().filter(|step| step.result.is_none()).collect();
        let (what, more) = match running.as_slice() {
            [] => {
                ("model".to_owned(), self.draft.lines().next_back().unwrap_or_default().to_owned())
            }
            [one] => ("program".to_owned(), line::call(one)),
            several => (format!("{} programs", several.len()), String::new()),
        };
        let number = if step == 0 { String::new() } else { format!("{step:<2} ") };
        let head = format!("{number}{seconds} s · {what}");
        let room = columns().saturating_sub(width(&head) + 6);
        let more = fit(&visible(more.trim()), room);
        let unfinished = self.answer.unfinished();
        let more = if more.is_empty() || !unfinished.is_empty() {
            String::new()
        } else {
            format!(" · {more}")
        };
        let line = format!("{} {head}{}", paint(NAME, frame), paint(DIM, &more));
        // The text must fit the screen, or its upper part would remain there.
        let hidden = unfinished.len().saturating_sub(rows().saturating_sub(4).min(MOST_LINES));
        let lines = unfinished.iter().skip(hidden).map(String::as_str);
        let lines: Vec<&str> = lines.chain([line.as_str()]).collect();
        output::transient(&lines.join("\n"));
        true
    }
}
