//! The tally of a run, collected from the run's events: the numbers of programs, failed calls and
//! repairs, and the first-try errors.

use std::time::Duration;

use parking_lot::Mutex;
use wattle_agent::host::machine::{Envelope, Event};
use wattle_agent::host::rt::{Code, Runtime, truncate};

use crate::attempt::FirstTryError;

/// Maximum length of a quoted line or message, in characters.
const MAX_QUOTE: usize = 200;
/// Maximum number of attempts to compile a program while the host is busy.
const MAX_TRIES: u32 = 20;

/// Counts of a run's programs, failed calls and repairs.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<TallyState>);

#[derive(Debug, Default)]
struct TallyState {
    /// The first program of each step, as the model wrote it.
    programs: Vec<(u32, String)>,
    /// The step of the last program.
    step: Option<u32>,
    /// The last call that has started and has no result yet.
    open: Option<OpenCall>,
    failures: u32,
    /// The failed calls, except those whose program did not compile.
    failed: Vec<FirstTryError>,
    repairs: u32,
}

/// A call that has started and has no result yet.
#[derive(Debug)]
struct OpenCall {
    step: u32,
    /// The program, or the name and arguments of a catalog program.
    text: String,
    is_program: bool,
}

/// The final counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) programs: u32,
    pub(crate) valid: u32,
    pub(crate) failures: u32,
    pub(crate) repairs: u32,
    pub(crate) errors: Vec<FirstTryError>,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.programs = self.programs.saturating_add(other.programs);
        self.valid = self.valid.saturating_add(other.valid);
        self.failures = self.failures.saturating_add(other.failures);
        self.repairs = self.repairs.saturating_add(other.repairs);
        self.errors.extend(other.errors);
    }
}

impl Tally {
    /// Records an event.
    pub(crate) fn record(&self, envelope: &Envelope) {
        let mut seen = self.0.lock();
        match &envelope.event {
            Event::ToolStart { step, label, body, args, .. } => {
                let text = match body {
                    Some(body) => body.clone(),
                    None => format!("{label} {}", quoted(args)),
                };
                let (step, is_program) = (*step, body.is_some());
                if let Some(body) = body.as_ref().filter(|_| seen.step != Some(step)) {
                    seen.step = Some(step);
                    seen.programs.push((step, body.clone()));
                }
                seen.open = Some(OpenCall { step, text, is_program });
            }
            Event::ToolResult { success, output, exit_code, .. } => {
                let open = seen.open.take();
                if !success {
                    seen.failures += 1;
                    seen.failed.extend(open.and_then(|open| open.failure(*exit_code, output)));
                }
            }
            // A retry before any program has started follows an empty answer and is not a repair.
            Event::Retry { step, .. }
                if seen.open.as_ref().is_some_and(|open| open.step == *step) =>
            {
                seen.repairs += 1;
            }
            _ => {}
        }
    }

    /// Returns the counts. A program is valid if it compiles as written, without fixes.
    pub(crate) async fn count(self, runtime: &Runtime) -> Count {
        let TallyState { programs, failures, failed, repairs, .. } = self.0.into_inner();
        let mut count = Count { failures, repairs, ..Count::default() };
        for (step, program) in programs {
            count.programs += 1;
            match error_of(runtime, step, &program).await {
                Some(error) => count.errors.push(error),
                None => count.valid += 1,
            }
        }
        count.errors.extend(failed);
        count.errors.sort_by_key(|error| error.step);
        count
    }
}

/// Returns the compile error of a program, or `None` if the program compiles as written.
async fn error_of(runtime: &Runtime, step: u32, program: &str) -> Option<FirstTryError> {
    let mut tries = 1;
    let wrong = loop {
        match runtime.prepare(program).await {
            Ok(_) => return None,
            // A busy host is not an error in the program.
            Err(busy) if busy.code == "host-busy" && tries < MAX_TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(wrong) => break wrong,
        }
    };
    Some(FirstTryError {
        step,
        class: wrong.code.to_owned(),
        line: Some(wrong.position.line),
        text: cut(wrong.line_text.trim()),
        message: cut(wrong.message.lines().next().unwrap_or_default()),
    })
}

impl OpenCall {
    /// Returns the failure of the call, or `None` if its program did not compile. [`Tally::count`]
    /// reports compile errors.
    fn failure(self, exit_code: Option<i32>, output: &str) -> Option<FirstTryError> {
        let class = match exit_code {
            Some(code) => Code(code).name().map_or_else(|| format!("exit {code}"), str::to_owned),
            None if output.starts_with("the program does not compile") => return None,
            None if output.starts_with("program error: ") => "trap".to_owned(),
            None if output.starts_with("tool error: ") => "time".to_owned(),
            None => "refused".to_owned(),
        };
        let line = if self.is_program { line_number(output) } else { None };
        let own = line.and_then(|number| self.text.lines().nth(number.saturating_sub(1) as usize));
        let text = match own {
            Some(own) => cut(own.trim()),
            None if self.is_program => String::new(),
            None => cut(&self.text),
        };
        let reason = output.lines().find_map(|line| line.strip_prefix("reason: "));
        let message = cut(reason.or_else(|| output.lines().next()).unwrap_or_default());
        Some(FirstTryError { step: self.step, class, line, text, message })
    }
}

/// Returns the line number that a failure report names, or `None` if it names no line.
fn line_number(output: &str) -> Option<u32> {
    let head = output.lines().take(4);
    let after = head.filter_map(|line| line.split_once("line ")).next()?.1;
    let digits = after.chars().take_while(char::is_ascii_digit).count();
    after.get(..digits)?.parse().ok()
}

fn quoted(args: &[String]) -> String {
    args.iter().map(|arg| format!("{arg:?}")).collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    truncate(text, MAX_QUOTE).into_owned()
}
