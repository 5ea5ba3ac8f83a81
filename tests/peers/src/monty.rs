//! Monty's Python interpreter, which runs within the process.

use std::time::{Duration, Instant};

use monty::{MontyRun, RunProgress};
use monty_types::{CompileOptions, MontyObject, PrintWriter, ResourceTracker};

use crate::Result;
use crate::jobs::Job;
use crate::sample::{Peer, kib_each};

/// The names of the host functions.
const FUNCTIONS: [&str; 3] = ["concat", "upper", "length"];

/// A job that Monty runs.
pub struct Monty {
    text: String,
    inputs: Vec<(String, String)>,
}

impl Monty {
    /// Prepares a job.
    ///
    /// # Errors
    /// If the program cannot be read.
    pub fn new(job: &Job) -> Result<Monty> {
        let inputs = job.inputs().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Monty { text: job.program("python", "py")?, inputs: inputs.collect() })
    }

    /// Parses the program and runs it until its first host call or its end.
    fn start(&self) -> Result<RunProgress> {
        let names = self.inputs.iter().map(|(name, _)| name.as_str()).chain(FUNCTIONS);
        let names = names.map(str::to_owned).collect();
        let values = self.inputs.iter().map(|(_, value)| MontyObject::String(value.clone()));
        let function =
            |name: &str| MontyObject::Function { name: name.to_owned(), docstring: None };
        let values = values.chain(FUNCTIONS.map(function)).collect();
        let run = MontyRun::new(self.text.clone(), "job.py", names, CompileOptions::default())
            .map_err(|why| format!("{why:?}"))?;
        run.start(values, ResourceTracker::default(), PrintWriter::Disabled)
            .map_err(|why| format!("{why:?}").into())
    }

    /// Runs the program to completion and returns its result.
    fn run_to_end(&self) -> Result<String> {
        let mut progress = self.start()?;
        loop {
            progress = match progress {
                RunProgress::Complete(MontyObject::String(result)) => return Ok(result),
                RunProgress::FunctionCall(call) => {
                    let result = perform(&call.function_name, &call.args)?;
                    call.resume(result, PrintWriter::Disabled).map_err(|why| format!("{why:?}"))?
                }
                _ => {
                    return Err(
                        "the program asks for something that the bench does not have".into()
                    );
                }
            };
        }
    }
}

/// Performs a host call.
fn perform(name: &str, args: &[MontyObject]) -> Result<MontyObject> {
    match (name, args) {
        ("concat", [MontyObject::String(a), MontyObject::String(b)]) => {
            Ok(MontyObject::String([a.as_str(), b.as_str()].concat()))
        }
        ("upper", [MontyObject::String(s)]) => Ok(MontyObject::String(s.to_uppercase())),
        ("length", [MontyObject::String(s)]) => Ok(MontyObject::Int(s.len() as i64)),
        _ => Err(format!("an unknown call of {name}").into()),
    }
}

impl Peer for Monty {
    async fn run(&mut self) -> Result<(Duration, String)> {
        let started = Instant::now();
        let result = self.run_to_end()?;
        Ok((started.elapsed(), result))
    }

    /// Keeps programs paused in their first host call. Returns their average memory use.
    async fn live(&mut self, count: usize) -> Result<Option<f64>> {
        kib_each(count, || self.start()).map(Some)
    }
}
