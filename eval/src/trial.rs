//! One trial: a task in its world, a model at it, and what came of it held against what is expected.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wattle_agent::machine::{Bound, Ending, Envelope, Settings as LoopSettings, Stop};
use wattle_agent::model::{Model, ModelErrorKind};
use wattle_agent::{Host, Job, Scene, Settings, now_ms};

use crate::attempt::{Approach, Attempt, Verdict};
use crate::baseline;
use crate::meter::Metered;
use crate::tally::{Count, Tally};
use crate::task::Task;

/// The longest answer that is kept, in characters.
const ANSWER_CHARS: usize = 4_000;

/// A task as it is given to a model.
pub(crate) struct Trial<'a> {
    pub(crate) task: &'a Task,
    pub(crate) model: String,
    pub(crate) approach: Approach,
    pub(crate) number: u32,
    pub(crate) recorded: bool,
}

/// How a run ended, whichever way the model was let at the task.
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) steps: u32,
    pub(crate) count: Count,
}

impl Trial<'_> {
    /// Returns the task to the model. `None` where `cancel` came first.
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
            Err(why) => return Some(self.error(format!("the task's world cannot be laid out: {why}"))),
        };
        let over = cancel.child_token();
        let meter = Metered::new(model, self.task.budget.tokens, over.clone());
        let budget = self.task.budget;
        let machine = LoopSettings { max_steps: budget.steps, ..settings.machine };
        let settings = Settings { machine, timeout: Some(budget.time), ..settings.clone() };
        let run = match self.approach {
            Approach::Programs => self.programs(host, &settings, &meter, &scene, over).await,
            Approach::Tools => {
                let grants = self.grants(host, &scene);
                baseline::run(host, &settings, &meter, &self.task.prompt, grants, &over).await
            }
        };
        if cancel.is_cancelled() && matches!(run.ending, Ending::Cancelled { .. }) {
            return None;
        }
        let dur_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (verdict, problems) = self.judge(host, &scene, &meter, &run.ending).await;
        let Count { programs, valid, failures, repairs } = run.count;
        let answer = run.ending.text().chars().take(ANSWER_CHARS).collect();
        let (stop, steps, tokens) = (run.ending.stop(), run.steps, meter.reading().tokens);
        let counted = Attempt { programs, valid, failures, repairs, ..self.blank() };
        Some(Attempt { verdict, problems, answer, stop, steps, tokens, dur_ms, ..counted })
    }

    /// The usual run: a program for each step.
    async fn programs(
        &self,
        host: &Host,
        settings: &Settings,
        meter: &Metered,
        scene: &Scene,
        cancel: CancellationToken,
    ) -> Run {
        let tally = Tally::default();
        let job = Job { cancel, ..Job::new(self.task.prompt.as_str(), self.grants(host, scene)) };
        let report = wattle_agent::run(host, meter, settings, job, &|envelope: &Envelope| tally.take(envelope)).await;
        Run { ending: report.ending, steps: report.steps, count: tally.count(host.runtime()).await }
    }

    /// What the task's programs are granted; `ai` only where the task has answers for it.
    fn grants(&self, host: &Host, scene: &Scene) -> wattle_agent::rt::Grants {
        let mut access = scene.access(host);
        if self.task.fixtures.ai.is_empty() {
            access.inference = None;
        }
        scene.grants(access)
    }

    async fn judge(&self, host: &Host, scene: &Scene, meter: &Metered, ending: &Ending) -> (Verdict, Vec<String>) {
        let budget = self.task.budget;
        // A conversation that has grown too long is the model's own doing.
        let error = meter.reading().error.filter(|error| error.kind() != ModelErrorKind::TooLong);
        if let (Ending::Failed { .. }, Some(error)) = (ending, error) {
            let whose = if error.kind() == ModelErrorKind::Cassette { "recording" } else { "provider" };
            return (Verdict::Error, vec![format!("{whose}: {error}")]);
        }
        let mut problems = Vec::new();
        if meter.is_over() {
            let (spent, budget) = (meter.reading().tokens.total(), budget.tokens.unwrap_or_default());
            problems.push(format!("it took {spent} tokens, more than its {budget}"));
        } else if let Ending::Exhausted { bound: Bound::Time, .. } = ending {
            problems.push(format!("it took longer than its {} ms", budget.time.as_millis()));
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

    /// The attempt that learnt nothing, because of that.
    pub(crate) fn error(&self, problem: String) -> Attempt {
        Attempt { problems: vec![problem], ..self.blank() }
    }

    fn blank(&self) -> Attempt {
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
