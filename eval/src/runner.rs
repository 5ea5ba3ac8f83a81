//! The runner, which makes several attempts at a time until every contender has worked on every
//! task. It reuses known results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use wattle_agent::Host;
use wattle_agent::model::{Mask, Model, Recorder};

use crate::attempt::{Approach, Attempt, Verdict};
use crate::error::EvalError;
use crate::place;
use crate::results::Results;
use crate::suite::Suite;
use crate::transcript::{self, Conversation};
use crate::trial::{Answers, Contender, Performance, Trial};
use crate::{prompt, recording};

/// The settings of an evaluation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of attempts at each task. 1 by default.
    pub repeat: u32,
    /// Maximum number of concurrent attempts. 4 by default.
    pub jobs: usize,
    /// Folder for the transcripts of new attempts. If it is `None`, no transcripts are written.
    pub transcripts: Option<PathBuf>,
    /// A token that cancels the evaluation. Running attempts are dropped, and results of finished
    /// attempts are kept.
    pub cancel: CancellationToken,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { repeat: 1, jobs: 4, transcripts: None, cancel: CancellationToken::new() }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// The attempts, including reused ones, ordered by contender, task and trial.
    pub attempts: Vec<Attempt>,
    /// Number of attempts reused from earlier evaluations.
    pub reused: usize,
    /// Number of attempts skipped because they have no recording.
    pub unrecorded: usize,
    /// Number of attempts repeated because the earlier attempt used a different prompt.
    pub other_prompt: usize,
    /// Number of attempts that were not made because the evaluation was cancelled.
    pub cancelled: usize,
}

/// Runs every task of the suite with every contender. Writes each new attempt to `results` and
/// passes it to `on_attempt` when it ends.
///
/// # Errors
/// If a result, a recording or a transcript cannot be written.
pub async fn evaluate(
    host: &Host,
    suite: &Suite,
    contenders: &[Contender],
    plan: &Plan,
    results: Option<&Results>,
    on_attempt: &(dyn Fn(&Attempt) + Sync),
) -> Result<Evaluation, EvalError> {
    let mut prompts = Vec::new();
    for contender in contenders {
        prompts.push(prompts_of(host, suite, contender.approach).await?);
    }
    let trials = contenders.iter().zip(&prompts).flat_map(|(contender, prompts)| {
        let numbered =
            move |task| (1..=plan.repeat).map(move |number| (contender, prompts, task, number));
        suite.tasks.iter().flat_map(numbered)
    });
    let other_prompt = AtomicUsize::new(0);
    let work = trials.map(|(contender, prompts, task, number)| {
        let agent = suite.agent_of(task);
        let name = agent.as_ref().map(|agent| agent.name.as_str());
        let trial = Trial {
            task,
            contender,
            number,
            prompt: prompts.get(name.unwrap_or_default()).cloned().unwrap_or_default(),
            agent,
            agents: &suite.agents,
        };
        let other_prompt = &other_prompt;
        async move {
            let wanted = trial.error(Vec::new());
            if let Some(known) = results.and_then(|results| results.find(&wanted)) {
                return Ok(TrialOutcome::Known(known.clone()));
            }
            if results.is_some_and(|results| results.has_other_prompt(&wanted)) {
                other_prompt.fetch_add(1, Ordering::Relaxed);
            }
            if plan.cancel.is_cancelled() {
                return Ok(TrialOutcome::Cancelled);
            }
            let done = attempt(host, suite, &trial, plan).await?;
            if let TrialOutcome::Made { attempt, conversation } = &done {
                let masked = attempt.masked(host.mask());
                results.map_or(Ok(()), |results| results.add(&masked))?;
                if let (Some(folder), Some(conversation)) = (&plan.transcripts, conversation) {
                    transcript::write(folder, attempt, conversation, host.mask())?;
                }
                on_attempt(attempt);
            }
            Ok(done)
        }
    });
    // The order is fixed, so that two evaluations of the same suite print their output in the same
    // order.
    let mut work = std::pin::pin!(stream::iter(work).buffered(plan.jobs.max(1)));
    let mut evaluation = Evaluation::default();
    while let Some(done) = work.next().await {
        match done? {
            TrialOutcome::Made { attempt, .. } => evaluation.attempts.push(attempt),
            TrialOutcome::Known(attempt) => {
                evaluation.reused += 1;
                evaluation.attempts.push(attempt);
            }
            TrialOutcome::Unrecorded => evaluation.unrecorded += 1,
            TrialOutcome::Cancelled => evaluation.cancelled += 1,
        }
    }
    evaluation.other_prompt = other_prompt.load(Ordering::Relaxed);
    Ok(evaluation)
}

/// Returns the fingerprints of the prompts that a suite's agents receive, by agent name. The name
/// is empty for a model without an agent.
async fn prompts_of(
    host: &Host,
    suite: &Suite,
    approach: Approach,
) -> Result<BTreeMap<String, String>, EvalError> {
    let mut prompts = BTreeMap::new();
    for task in &suite.tasks {
        let agent = suite.agent_of(task);
        let name = agent.as_ref().map_or("", |agent| agent.name.as_str());
        if prompts.contains_key(name) {
            continue;
        }
        if approach == Approach::Tools && agent.is_some() {
            return Err(EvalError::baseline_with_agent(&suite.dir, name));
        }
        let (agent, agents) = (agent.as_deref(), &suite.agents);
        let prompt = prompt::fingerprint_of(host, &suite.settings, approach, agent, agents).await;
        let prompt = prompt.map_err(|why| EvalError::load(&suite.dir, why))?;
        prompts.insert(name.to_owned(), prompt);
    }
    Ok(prompts)
}

/// The outcome of a trial.
enum TrialOutcome {
    Made { attempt: Attempt, conversation: Option<Box<Conversation>> },
    Known(Attempt),
    Unrecorded,
    Cancelled,
}

async fn attempt(
    host: &Host,
    suite: &Suite,
    trial: &Trial<'_>,
    plan: &Plan,
) -> Result<TrialOutcome, EvalError> {
    let Trial { task, contender, number, .. } = *trial;
    let (model, file): (Arc<dyn Model>, _) = match &contender.answers {
        Answers::Recorded => {
            let own = task.recording.clone();
            let find = || suite.recordings.find(&contender.model, contender.approach, task, number);
            match own.or_else(find) {
                None => return Ok(TrialOutcome::Unrecorded),
                Some(path) => match recording::open(&path) {
                    Ok(cassette) => (Arc::new(cassette), None),
                    Err(why) => {
                        let attempt = trial.error(vec![why.to_string()]);
                        return Ok(TrialOutcome::Made { attempt, conversation: None });
                    }
                },
            }
        }
        Answers::Live { model, record: false } => (Arc::clone(model), None),
        Answers::Live { model, record: true } => {
            let (recorder, recording) =
                Recording::begin(suite, trial, Arc::clone(model), host.mask().clone())?;
            (Arc::new(recorder), Some(recording))
        }
    };
    model.key().inspect(|key| host.mask().add_key(key));
    let done = trial.perform(host, &suite.settings, model, &plan.cancel).await;
    if let Some(file) = file {
        let is_complete = done.as_ref().is_some_and(|done| done.attempt.verdict != Verdict::Error);
        file.finish(is_complete)?;
    }
    Ok(done.map_or(TrialOutcome::Cancelled, |Performance { attempt, conversation }| {
        TrialOutcome::Made { attempt, conversation: Some(Box::new(conversation)) }
    }))
}

/// A recording in progress. It is written to a temporary file, which is renamed to the target when
/// the recording is complete.
struct Recording {
    partial: std::path::PathBuf,
    target: std::path::PathBuf,
}

impl Recording {
    fn begin(
        suite: &Suite,
        trial: &Trial<'_>,
        model: Arc<dyn Model>,
        mask: Mask,
    ) -> Result<(Recorder, Recording), EvalError> {
        let Trial { task, contender, number, .. } = *trial;
        let target = suite.recordings.path(&contender.model, contender.approach, task, number);
        let partial = target.with_extension("jsonl.part");
        let failed = |why: std::io::Error| EvalError::write(&partial, why);
        place::prepare(&suite.dir, &partial).map_err(failed)?;
        std::fs::write(&partial, "").map_err(failed)?;
        let recorder = Recorder::create(model, &partial, mask)
            .map_err(|why| EvalError::write(&partial, why))?;
        Ok((recorder, Recording { partial, target }))
    }

    /// Renames the recording to its target path if it is complete, and removes it otherwise.
    fn finish(self, is_complete: bool) -> Result<(), EvalError> {
        let ended = if is_complete {
            std::fs::rename(&self.partial, &self.target)
        } else {
            std::fs::remove_file(&self.partial)
        };
        ended.map_err(|why| EvalError::write(&self.target, why))
    }
}
