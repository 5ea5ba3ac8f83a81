//! Samples of right and wrong results. They show that a task's expectations can tell right results
//! from wrong ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use wattle_agent::Host;
use wattle_agent::host::ExampleWorld;

use crate::suite::Suite;
use crate::task::Task;

/// Results that the task's expectations must accept, and results that they must reject.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Samples {
    /// Results that the expectations must accept.
    #[serde(deserialize_with = "samples")]
    pub right: Vec<Sample>,
    /// Results that the expectations must reject.
    #[serde(deserialize_with = "samples")]
    pub wrong: Vec<Sample>,
}

/// A result: an answer, with the files and the state after the run. A sample inherits everything
/// that it omits from the first right sample.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sample {
    answer: Option<String>,
    files: BTreeMap<String, String>,
    kv: BTreeMap<String, String>,
    /// The memory items after the run.
    memory: Option<Vec<String>>,
    /// Files and keys that do not exist after the run.
    removed: Vec<String>,
}

/// A sample in a task file, which may be the answer alone.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected an answer, or a table with answer, files, kv, memory, removed"
)]
enum SampleKeys {
    Answer(String),
    Result(Sample),
}

fn samples<'de, D: Deserializer<'de>>(keys: D) -> Result<Vec<Sample>, D::Error> {
    let sample = |keys: SampleKeys| match keys {
        SampleKeys::Answer(answer) => Sample { answer: Some(answer), ..Sample::default() },
        SampleKeys::Result(sample) => sample,
    };
    Ok(Vec::<SampleKeys>::deserialize(keys)?.into_iter().map(sample).collect())
}

impl Suite {
    /// Checks every task's fixtures and samples. Returns a message for each task whose fixtures
    /// cannot be set up, for each problem that the expectations find in a right sample, and for
    /// each wrong sample in which they find no problem.
    ///
    /// # Errors
    /// If the engine fails.
    pub async fn check(&self, host: &Host) -> Result<Vec<String>, String> {
        let mut faults = Vec::new();
        for task in &self.tasks {
            task.check(host, &mut faults).await?;
        }
        Ok(faults)
    }
}

impl Task {
    async fn check(&self, host: &Host, faults: &mut Vec<String>) -> Result<(), String> {
        if let Err(why) = ExampleWorld::new(&self.fixtures).await {
            faults.push(format!("{}: failed to set up the fixtures: {why}", self.id));
            return Ok(());
        }
        let Samples { right, wrong } = &self.samples;
        let first = right.first();
        for (at, sample) in right.iter().enumerate() {
            for problem in self.problems_of(host, sample, first).await? {
                faults.push(format!("{}: right sample {} fails: {problem}", self.id, at + 1));
            }
        }
        for (at, sample) in wrong.iter().enumerate() {
            if self.problems_of(host, sample, first).await?.is_empty() {
                faults.push(format!("{}: wrong sample {} passes", self.id, at + 1));
            }
        }
        Ok(())
    }

    /// Returns the problems that the expectations find in a sample. Everything that the sample
    /// omits is taken from `first`.
    async fn problems_of(
        &self,
        host: &Host,
        sample: &Sample,
        first: Option<&Sample>,
    ) -> Result<Vec<String>, String> {
        let base = first.filter(|first| !std::ptr::eq(*first, sample));
        let parts: Vec<&Sample> = base.into_iter().chain([sample]).collect();
        let mut fixtures = self.fixtures.clone();
        for part in &parts {
            fixtures.files.extend(part.files.clone());
            fixtures.kv.extend(part.kv.clone());
            if let Some(memory) = &part.memory {
                fixtures.memory.clone_from(memory);
            }
            part.removed.iter().for_each(|path| _ = fixtures.files.remove(path));
            part.removed.iter().for_each(|key| _ = fixtures.kv.remove(key));
        }
        let scene = ExampleWorld::new(&fixtures).await?;
        let answer = parts.iter().rev().find_map(|part| part.answer.as_deref());
        self.problems(host, &scene, answer.unwrap_or_default()).await
    }
}
