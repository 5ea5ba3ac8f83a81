//! Expectations for the answer, the files and the state after an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use wattle_agent::Host;
use wattle_agent::host::ExampleWorld;
use wattle_agent::host::catalog::Fixtures;
use wattle_agent::host::rt::{Code, Exit};

use crate::rule::Rule;

/// The expectations of a task. An attempt must meet all of them.
///
/// Each file and key that the fixtures define must keep its content, unless there is a rule for it.
/// The items in memory must also be kept unless there is a rule for the memory. A program that
/// damages other data does not solve the task. Other files, keys and memory items may be added.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// The rule for the answer.
    pub answer: Option<Rule>,
    /// The rules for files, by path.
    pub files: BTreeMap<String, Rule>,
    /// The rules for values of the state, by key.
    pub kv: BTreeMap<String, Rule>,
    /// The rule for the memory items, one item per line, oldest first.
    pub memory: Option<Rule>,
    /// A program that checks the result. Its first argument is the answer, and it can read the
    /// files and the state. Each result that the program outputs is reported as a problem, and so
    /// is an exit code other than 0.
    pub program: Option<String>,
}

impl Expectation {
    /// Returns true if there are no expectations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let rules = self.answer.iter().chain(&self.memory);
        let mut rules = rules.chain(self.files.values()).chain(self.kv.values());
        rules.all(Rule::is_empty) && self.program.is_none()
    }

    /// Returns the unmet expectations, one sentence each.
    ///
    /// # Errors
    /// If the expectation's program does not compile, or the engine fails.
    pub(crate) async fn problems(
        &self,
        host: &Host,
        scene: &ExampleWorld,
        fixtures: &Fixtures,
        answer: &str,
    ) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        if let Some(rule) = &self.answer {
            problems.extend(rule.problems("the answer", Some(answer)));
        }
        for (path, rule) in &self.files {
            problems.extend(
                rule.problems(&format!("the file `{path}`"), scene.file(path).ok().as_deref()),
            );
        }
        for (key, rule) in &self.kv {
            problems.extend(
                rule.problems(&format!("the key `{key}`"), scene.value(key).await?.as_deref()),
            );
        }
        if let Some(rule) = &self.memory {
            let items = scene.memory().await?.join("\n");
            problems.extend(rule.problems("the memory", Some(&items)));
        }
        problems.extend(self.damage(scene, fixtures).await?);
        if let Some(source) = &self.program {
            problems.extend(run_check(source, host, scene, answer).await?);
        }
        Ok(problems)
    }

    /// Returns one sentence for each file, key and memory item that has no rule and differs from
    /// the fixtures.
    async fn damage(
        &self,
        scene: &ExampleWorld,
        fixtures: &Fixtures,
    ) -> Result<Vec<String>, String> {
        let mut damage = Vec::new();
        for (path, before) in &fixtures.files {
            if !self.files.contains_key(path) && scene.file(path).ok().as_ref() != Some(before) {
                damage.push(format!("the file `{path}` was changed, but should not be"));
            }
        }
        for (key, before) in &fixtures.kv {
            if !self.kv.contains_key(key) && scene.value(key).await?.as_ref() != Some(before) {
                damage.push(format!("the key `{key}` was changed, but should not be"));
            }
        }
        if self.memory.is_none() && !fixtures.memory.is_empty() {
            let items = scene.memory().await?;
            for before in fixtures.memory.iter().filter(|before| !items.contains(before)) {
                damage.push(format!("the item {before:?} was removed, but should not be"));
            }
        }
        Ok(damage)
    }
}

/// Runs the expectation's program and returns the problems that it reports.
async fn run_check(
    source: &str,
    host: &Host,
    scene: &ExampleWorld,
    answer: &str,
) -> Result<Vec<String>, String> {
    let wrong = |why: String| format!("failed to run the expectation's program: {why}");
    let program = host.prepare(source).await.map_err(|why| wrong(why.to_string()))?;
    let grants = Arc::new(scene.grants(scene.access(host)));
    let outcome = host
        .runtime()
        .run(&program, &grants, vec![answer.to_owned()])
        .await
        .map_err(|why| wrong(why.to_string()))?;
    let mut problems = outcome.texts();
    match outcome.exit {
        Exit::Trapped(trap) => problems.push(format!("the expectation's program trapped: {trap}")),
        Exit::Returned(Code::SUCCESS) => {}
        Exit::Returned(code) => {
            let why = outcome
                .failure
                .map(|failed| format!(": {}", failed.failure.reason))
                .unwrap_or_default();
            problems.push(format!("the expectation's program exited with {code}{why}"));
        }
    }
    Ok(problems)
}
