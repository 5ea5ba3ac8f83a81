//! Trials. A trial runs one task with one model and compares the result with the expectations.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wattle_agent::agents::{AgentSpec, Agents};
use wattle_agent::host::machine::{Bound, Ending, Envelope, Settings as LoopSettings, Stop};
use wattle_agent::host::rt::Grants;
use wattle_agent::host::{DialectSetting, ExampleWorld, RunParts, RunRequest, now_ms};
use wattle_agent::model::{Model, ModelErrorKind};
use wattle_agent::{Host, Settings};

use crate::agent::{self, AgentTask};
use crate::attempt::{Approach, Attempt, Tokens, Verdict};
use crate::baseline;
use crate::meter::MeteredModel;
use crate::tally::{Count, Tally};
use crate::task::Task;
use crate::transcript::Conversation;

/// Maximum length of a stored answer, in characters.
const MAX_ANSWER: usize = 4_000;

/// A model that takes part in an evaluation.
#[derive(Clone)]
pub struct Contender {
    /// The model's name.
    pub model: String,
    /// The model's approach to the tasks.
    pub approach: Approach,
    /// The source of the model's answers.
    pub answers: Answers,
}

/// The source of a model's answers.
#[derive(Clone)]
pub enum Answers {
    /// The suite's recordings. Tasks without a recording are skipped.
    Recorded,
    /// The model itself.
    Live {
        /// The model.
        model: Arc<dyn Model>,
        /// If true, the answers are recorded and existing recordings are replaced.
        record: bool,
    },
}

/// A task, and the model that works on it.
pub(crate) struct Trial<'a> {
    pub(crate) task: &'a Task,
    pub(crate) contender: &'a Contender,
    /// The agent that works on the task, if there is one.
    pub(crate) agent: Option<Arc<AgentSpec>>,
    /// The agents that the agent may delegate to.
    pub(crate) agents: &'a Agents,
    pub(crate) number: u32,
    /// The hash of the prompt that the model receives.
    pub(crate) prompt: String,
}

/// An attempt and its conversation.
pub(crate) struct Performance {
    pub(crate) attempt: Attempt,
    pub(crate) conversation: Conversation,
}

/// Returns the grants for a task's programs. The grants include the host's shell. `ai` is granted
/// only if `with_ai` is true.
pub(crate) fn grants(host: &Host, scene: &ExampleWorld, with_ai: bool) -> Grants {
    let mut access = scene.access(host);
    access.shell = Some(host.shell());
    if !with_ai {
        access.inference = None;
    }
    scene.grants(access)
}

/// The result of a run with programs or tools.
pub(crate) struct Run {
    pub(crate) ending: Ending,
    pub(crate) steps: u32,
    pub(crate) count: Count,
}

impl Trial<'_> {
    /// Runs the task with the model. Returns `None` if the attempt was cancelled.
    pub(crate) async fn perform(
        &self,
        host: &Host,
        settings: &Settings,
        model: Arc<dyn Model>,
        cancel: &CancellationToken,
    ) -> Option<Performance> {
        let started = Instant::now();
        let scene = match ExampleWorld::new(&self.task.fixtures).await {
            Ok(scene) => Arc::new(scene),
            Err(why) => {
                let why = format!("failed to set up the task's fixtures: {why}");
                return Some(Performance {
                    attempt: self.error(vec![why]),
                    conversation: Conversation::default(),
                });
            }
        };
        let stop = cancel.child_token();
        let meter = Arc::new(MeteredModel::new(model, self.task.budget.tokens, stop.clone()));
        let budget = self.task.budget;
        let machine = LoopSettings { max_steps: budget.steps, ..settings.machine };
        let settings = Settings { machine, timeout: Some(budget.time), ..settings.clone() };
        let run = match self.contender.approach {
            Approach::Programs | Approach::Native => {
                let dialect = match (settings.dialect, self.contender.approach) {
                    (DialectSetting::Auto, _) => DialectSetting::Auto,
                    (_, Approach::Native) => DialectSetting::Native,
                    _ => DialectSetting::Text,
                };
                let settings = Settings { dialect, ..settings };
                match &self.agent {
                    None => self.programs(host, &settings, &meter, &scene, stop).await,
                    Some(agent) => {
                        let task = AgentTask {
                            host: host.clone(),
                            agents: self.agents.clone(),
                            settings,
                            scene: Arc::clone(&scene),
                            model: Arc::<MeteredModel>::clone(&meter),
                            with_ai: !self.task.fixtures.ai.is_empty(),
                        };
                        match agent::run(task, agent, &self.task.prompt, &stop).await {
                            Ok(run) => run,
                            Err(why) => {
                                let attempt = self.error(vec![why.to_string()]);
                                let conversation = meter.reading().conversation;
                                return Some(Performance { attempt, conversation });
                            }
                        }
                    }
                }
            }
            Approach::Tools => {
                let grants = self.grants(host, &scene);
                baseline::run(host, &settings, &*meter, &self.task.prompt, grants, &stop).await
            }
        };
        if cancel.is_cancelled() && matches!(run.ending, Ending::Cancelled { .. }) {
            return None;
        }
        let dur_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (verdict, problems) = self.judge(host, &scene, &meter, &run.ending).await;
        let Count { programs, valid, failures, repairs, errors } = run.count;
        let answer = run.ending.text().chars().take(MAX_ANSWER).collect();
        let (stop, steps, tokens) = (run.ending.stop(), run.steps, meter.reading().tokens);
        let counted =
            Attempt { programs, valid, failures, repairs, errors, ..self.error(Vec::new()) };
        let attempt = Attempt { verdict, problems, answer, stop, steps, tokens, dur_ms, ..counted };
        Some(Performance { attempt, conversation: meter.reading().conversation })
    }

    /// Returns the grants for the task's programs.
    fn grants(&self, host: &Host, scene: &ExampleWorld) -> Grants {
        grants(host, scene, !self.task.fixtures.ai.is_empty())
    }

    /// Runs the task without an agent. The model answers with programs or function calls.
    async fn programs(
        &self,
        host: &Host,
        settings: &Settings,
        meter: &Arc<MeteredModel>,
        scene: &ExampleWorld,
        cancel: CancellationToken,
    ) -> Run {
        let tally = Tally::default();
        let grants = self.grants(host, scene);
        let model: Arc<dyn Model> = Arc::<MeteredModel>::clone(meter);
        let parts = RunParts {
            settings: settings.clone(),
            cancel: cancel.into(),
            ..RunParts::new(host.clone(), model, grants)
        };
        let request = RunRequest::new(self.task.prompt.as_str());
        let sink = |envelope: &Envelope| tally.record(envelope);
        let report = wattle_agent::host::run(parts, &request, &sink).await;
        Run {
            ending: report.ending,
            steps: report.steps,
            count: tally.count(&host.calling_runtime()).await,
        }
    }

    async fn judge(
        &self,
        host: &Host,
        scene: &ExampleWorld,
        meter: &MeteredModel,
        ending: &Ending,
    ) -> (Verdict, Vec<String>) {
        let budget = self.task.budget;
        // A conversation that exceeds the model's context is a failure of the model, not an error.
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
        } else if let Ending::Invalid { errors, .. } = ending {
            problems.push(format!("the answer does not match its schema: {}", errors.join("; ")));
        } else if let Ending::Failed { message } = ending {
            problems.push(message.strip_prefix("error: ").unwrap_or(message).to_owned());
        }
        if problems.is_empty() {
            match self.task.problems(host, scene, ending.text()).await {
                Ok(found) => problems = found,
                Err(why) => return (Verdict::Error, vec![why]),
            }
        }
        (if problems.is_empty() { Verdict::Passed } else { Verdict::Failed }, problems)
    }

    /// Creates an attempt that ended with an error.
    pub(crate) fn error(&self, problems: Vec<String>) -> Attempt {
        Attempt {
            task: self.task.id.clone(),
            model: self.contender.model.clone(),
            approach: self.contender.approach,
            agent: self.agent.as_ref().map(|agent| agent.name.clone()).unwrap_or_default(),
            trial: self.number,
            recorded: matches!(self.contender.answers, Answers::Recorded),
            fingerprint: self.task.fingerprint.clone(),
            prompt: self.prompt.clone(),
            verdict: Verdict::Error,
            problems,
            answer: String::new(),
            stop: None::<Stop>,
            steps: 0,
            programs: 0,
            valid: 0,
            failures: 0,
            repairs: 0,
            errors: Vec::new(),
            tokens: Tokens::default(),
            dur_ms: 0,
            ended_ms: now_ms(),
        }
    }
}
