//! The runner: every task to every contender, several at once, and what is known already not again.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use wattle_agent::Host;
use wattle_agent::model::{Model, Recorder};

use crate::attempt::{Approach, Attempt, Verdict};
use crate::error::EvalError;
use crate::results::Results;
use crate::suite::Suite;
use crate::trial::Trial;
use crate::{Task, recording};

/// A model as it takes part.
#[derive(Clone)]
pub struct Contender {
    /// Its name.
    pub model: String,
    /// How it is let at the tasks.
    pub approach: Approach,
    /// Where its answers come from.
    pub answers: Answers,
}

/// Where a model's answers come from.
#[derive(Clone)]
pub enum Answers {
    /// From the suite's recordings. A task without one is left out.
    Recorded,
    /// From the model.
    Live {
        /// The model.
        model: Arc<dyn Model>,
        /// If true, they are recorded, in place of the recordings that there are.
        record: bool,
    },
}

/// How an evaluation goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often each task is given (default 1).
    pub repeat: u32,
    /// How many attempts are under way at once (default 4).
    pub jobs: usize,
    /// Ends the evaluation when it is cancelled: attempts under way come to nothing, those done are kept.
    pub cancel: CancellationToken,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { repeat: 1, jobs: 4, cancel: CancellationToken::new() }
    }
}

/// What an evaluation came to.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// The attempts, in the order of contenders, tasks and trials; those of earlier runs too.
    pub attempts: Vec<Attempt>,
    /// How many of them an earlier run made.
    pub reused: usize,
    /// How many were left out, because there is no recording of them.
    pub unrecorded: usize,
    /// How many were not made, because the evaluation was cancelled.
    pub cancelled: usize,
}

/// Returns every task of the suite to every contender. `on_attempt` sees each attempt that is made, as it ends; `results` keeps it.
///
/// # Errors
/// Where what was learnt cannot be kept, or a recording cannot be written.
pub async fn evaluate(
    host: &Host,
    suite: &Suite,
    contenders: &[Contender],
    plan: &Plan,
    results: Option<&Results>,
    on_attempt: &(dyn Fn(&Attempt) + Sync),
) -> Result<Evaluation, EvalError> {
    let trials = contenders.iter().flat_map(|contender| {
        let numbered = move |task| (1..=plan.repeat).map(move |number| (contender, task, number));
        suite.tasks.iter().flat_map(numbered)
    });
    let work = trials.map(|(contender, task, number)| {
        let trial = Trial {
            task,
            model: contender.model.clone(),
            approach: contender.approach,
            number,
            recorded: matches!(contender.answers, Answers::Recorded),
        };
        async move {
            if let Some(known) = results.and_then(|results| results.find(&trial.error(String::new()))) {
                return Ok(Done::Known(known.clone()));
            }
            if plan.cancel.is_cancelled() {
                return Ok(Done::Cancelled);
            }
            let done = attempt(host, suite, contender, &trial, &plan.cancel).await?;
            if let Done::Made(attempt) = &done {
                results.map_or(Ok(()), |results| results.add(attempt))?;
                on_attempt(attempt);
            }
            Ok(done)
        }
    });
    // The order of the work is kept, so that two evaluations of the same show the same.
    let mut work = std::pin::pin!(stream::iter(work).buffered(plan.jobs.max(1)));
    let mut evaluation = Evaluation::default();
    while let Some(done) = work.next().await {
        match done? {
            Done::Made(attempt) => evaluation.attempts.push(attempt),
            Done::Known(attempt) => {
                evaluation.reused += 1;
                evaluation.attempts.push(attempt);
            }
            Done::Unrecorded => evaluation.unrecorded += 1,
            Done::Cancelled => evaluation.cancelled += 1,
        }
    }
    Ok(evaluation)
}

/// What became of a trial.
enum Done {
    Made(Attempt),
    Known(Attempt),
    Unrecorded,
    Cancelled,
}

async fn attempt(
    host: &Host,
    suite: &Suite,
    contender: &Contender,
    trial: &Trial<'_>,
    cancel: &CancellationToken,
) -> Result<Done, EvalError> {
    let Trial { task, number, .. } = *trial;
    let (model, file): (Arc<dyn Model>, _) = match &contender.answers {
        Answers::Recorded => match suite.recordings.find(&contender.model, contender.approach, task, number) {
            None => return Ok(Done::Unrecorded),
            Some(path) => match recording::open(&path) {
                Ok(cassette) => (Arc::new(cassette), None),
                Err(why) => return Ok(Done::Made(trial.error(why.to_string()))),
            },
        },
        Answers::Live { model, record: false } => (Arc::clone(model), None),
        Answers::Live { model, record: true } => {
            let recording = Recording::begin(suite, contender, task, number, Arc::clone(model))?;
            (Arc::new(recording.0), Some(recording.1))
        }
    };
    let attempt = trial.perform(host, &suite.settings, model, cancel).await;
    if let Some(file) = file {
        let whole = attempt.as_ref().is_some_and(|attempt| attempt.verdict != Verdict::Error);
        file.end(whole)?;
    }
    Ok(attempt.map_or(Done::Cancelled, Done::Made))
}

/// A recording that is being made: beside its place, until it is whole.
struct Recording {
    making: std::path::PathBuf,
    place: std::path::PathBuf,
}

impl Recording {
    fn begin(
        suite: &Suite,
        contender: &Contender,
        task: &Task,
        number: u32,
        model: Arc<dyn Model>,
    ) -> Result<(Recorder, Recording), EvalError> {
        let place = suite.recordings.path(&contender.model, contender.approach, task, number);
        let making = place.with_extension("jsonl.part");
        let failed = |why: std::io::Error| EvalError::write(&making, why.to_string());
        if let Some(folder) = making.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(&making, "").map_err(failed)?;
        let recorder = Recorder::create(model, &making).map_err(|why| EvalError::write(&making, why.to_string()))?;
        Ok((recorder, Recording { making, place }))
    }

    /// Puts a recording that is whole into its place, and removes any other.
    fn end(self, whole: bool) -> Result<(), EvalError> {
        let ended = match whole {
            true => std::fs::rename(&self.making, &self.place),
            false => std::fs::remove_file(&self.making),
        };
        ended.map_err(|why| EvalError::write(&self.place, why.to_string()))
    }
}
