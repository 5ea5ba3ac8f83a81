//! Runs one task with one model, and compares the result with the expectations.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wattle_agent::machine::{Bound, Ending, Envelope, Settings as LoopSettings, Stop};
use wattle_agent::model::{Model, ModelErrorKind};
use wattle_agent::{Host, Job, Scene, Settings, now_ms};

use crate::attempt::{Approach, Attempt, Verdict};
use crate::baseline;
use crate::meter::MeteredModel;
use crate::tally::{Count, Tally};
use crate::task::Task;

/// Maximum length of a stored answer, in characters.
const MAX_ANSWER: usize = 4_000;

/// A task and the model that works on it.
pub(crate) struct Trial<'a> {
    pub(crate) task: &'a Task,
    pub(crate) model: String,
    pub(crate) approach: Approach,
    pub(crate) number: u32,
    pub(crate) recorded: bool,
}

/// The result of a run, with programs or with tools.
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) steps: u32,
    pub(crate) count: Count,
}

impl Trial<'_> {
    /// Runs the task with the model. Returns `None` if it was cancelled.
    pub(crate) async fn perform(
        &self,
        host: &Host,
        settings: &Settings,
        model: Arc<dyn Model>,
        cancel: &CancellationToken,
    ) -> Option<Attempt> {
        let started = Instant::now();
        let scene = match Scene::new(&self.task.fixtures).await {
            Ok(scene) => scene,
            Err(why) => {
                return Some(self.error(format!("failed to set up the task's fixtures: {why}")));
            }
        };
        let stop = cancel.child_token();
        let meter = MeteredModel::new(model, self.task.budget.tokens, stop.clone());
        let budget = self.task.budget;
        let machine = LoopSettings { max_steps: budget.steps, ..settings.machine };
        let settings = Settings { machine, timeout: Some(budget.time), ..settings.clone() };
        let run = match self.approach {
            Approach::Programs => self.programs(host, &settings, &meter, &scene, stop).await,
            Approach::Tools => {
                let grants = self.grants(host, &scene);
                baseline::run(host, &settings, &meter, &self.task.prompt, grants, &stop).await
            }
        };
        if cancel.is_cancelled() && matches!(run.ending, Ending::Cancelled { .. }) {
            return None;
        }
        let dur_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (verdict, problems) = self.judge(host, &scene, &meter, &run.ending).await;
        let Count { programs, valid, failures, repairs } = run.count;
        let answer = run.ending.text().chars().take(MAX_ANSWER).collect();
        let (stop, steps, tokens) = (run.ending.stop(), run.steps, meter.reading().tokens);
        let counted = Attempt { programs, valid, failures, repairs, ..self.empty_attempt() };
        Some(Attempt { verdict, problems, answer, stop, steps, tokens, dur_ms, ..counted })
    }

    /// Runs the agent's loop, in which the model answers with programs.
    async fn programs(
        &self,
        host: &Host,
        settings: &Settings,
        meter: &MeteredModel,
        scene: &Scene,
        cancel: CancellationToken,
    ) -> Run {
        let tally = Tally::default();
        let job = Job { cancel, ..Job::new(self.task.prompt.as_str(), self.grants(host, scene)) };
        let report = wattle_agent::run(host, meter, settings, job, &|envelope: &Envelope| {
            tally.record(envelope)
        })
        .await;
        Run { ending: report.ending, steps: report.steps, count: tally.count(host.runtime()).await }
    }

    /// Returns the grants of the task's programs. `ai` is only granted if the task has answers for
    /// it.
    fn grants(&self, host: &Host, scene: &Scene) -> wattle_agent::rt::Grants {
        let mut access = scene.access(host);
        if self.task.fixtures.ai.is_empty() {
            access.inference = None;
        }
        scene.grants(access)
    }

    async fn judge(
        &self,
        host: &Host,
        scene: &Scene,
        meter: &MeteredModel,
        ending: &Ending,
    ) -> (Verdict, Vec<String>) {
        let budget = self.task.budget;
        // A conversation that is too long is a failure of the model, not an error.
        let error = meter.reading().error.filter(|error| error.kind() != ModelErrorKind::TooLong);
        if let (Ending::Failed { .. }, Some(error)) = (ending, error) {
            let whose =
                if error.kind() == ModelErrorKind::Cassette { "recording" } else { "provider" };
            return (Verdict::Error, vec![format!("{whose}: {error}")]);
        }
        let mut problems = Vec::new();
        if meter.is_exceeded() {
            let (spent, budget) =
                (meter.reading().tokens.total(), budget.tokens.unwrap_or_default());
            problems.push(format!("it used {spent} tokens, and the limit is {budget}"));
        } else if let Ending::Exhausted { bound: Bound::Time, .. } = ending {
            problems
                .push(format!("it took longer than the limit of {} ms", budget.time.as_millis()));
        } else if let Ending::Failed { message } = ending {
            problems.push(message.strip_prefix("error: ").unwrap_or(message).to_owned());
        }
        if problems.is_empty() {
            match self.task.expect.problems(host, scene, ending.text()).await {
                Ok(found) => problems = found,
                Err(why) => return (Verdict::Error, vec![why]),
            }
        }
        (if problems.is_empty() { Verdict::Passed } else { Verdict::Failed }, problems)
    }

    /// Returns an attempt that ended with an error.
    pub(crate) fn error(&self, problem: String) -> Attempt {
        Attempt { problems: vec![problem], ..self.empty_attempt() }
    }

    fn empty_attempt(&self) -> Attempt {
        Attempt {
            task: self.task.id.clone(),
            model: self.model.clone(),
            approach: self.approach,
            trial: self.number,
            recorded: self.recorded,
            fingerprint: self.task.fingerprint.clone(),
            verdict: Verdict::Error,
            problems: Vec::new(),
            answer: String::new(),
            stop: None::<Stop>,
            steps: 0,
            programs: 0,
            valid: 0,
            failures: 0,
            repairs: 0,
            tokens: crate::attempt::Tokens::default(),
            dur_ms: 0,
            ended_ms: now_ms(),
        }
    }
}
