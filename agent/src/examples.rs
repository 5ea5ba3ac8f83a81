//! Catalog examples, run for real: the program in the sandbox, the world around it from the example's fixtures.

use std::fmt;
use std::sync::Arc;

use wattle_catalog::{Entry, Example, Results};
use wattle_rt::{Exit, Outcome, Runtime};

use crate::Scene;

/// What an example gave that it should not have, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleFault {
    /// The line of the file that the example begins in.
    pub line: usize,
    /// What was found and what was expected.
    pub found: Vec<String>,
}

impl fmt::Display for ExampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the example at line {}: {}", self.line, self.found.join("; "))
    }
}

impl std::error::Error for ExampleFault {}

/// Runs one example of a program and holds what comes of it against what the example says.
///
/// # Errors
/// What differs, or why the program could not be run.
pub async fn check_example(runtime: &Runtime, entry: &Entry, example: &Example) -> Result<(), ExampleFault> {
    let found = match differences(runtime, entry, example).await {
        Ok(found) => found,
        Err(why) => vec![why],
    };
    if found.is_empty() { Ok(()) } else { Err(ExampleFault { line: example.line, found }) }
}

async fn differences(runtime: &Runtime, entry: &Entry, example: &Example) -> Result<Vec<String>, String> {
    let args = entry.arguments(&example.args).map_err(|e| e.to_string())?;
    let program = runtime.prepare(entry.source()).await.map_err(|d| d.to_string())?;
    let scene = Scene::new(&example.fixtures).await?;
    let grants = Arc::new(scene.access().grants());
    let outcome = runtime.run(&program, &grants, args).await.map_err(|e| e.to_string())?;

    let mut found = Vec::new();
    compare_outcome(&mut found, example, &outcome);
    for (path, expected) in &example.expected.files {
        compare(&mut found, &format!("the file `{path}`"), &scene.file(path), expected);
    }
    for (key, expected) in &example.expected.kv {
        let value = scene.value(key).await?.ok_or_else(|| "absent".to_owned());
        compare(&mut found, &format!("the key `{key}`"), &value, expected);
    }
    Ok(found)
}

fn compare(found: &mut Vec<String>, what: &str, actual: &Result<String, String>, expected: &str) {
    match actual {
        Ok(actual) if actual == expected => {}
        Ok(actual) => found.push(format!("{what}: found {actual:?}, expected {expected:?}")),
        Err(why) => found.push(format!("{what}: {why}, expected {expected:?}")),
    }
}

fn compare_outcome(found: &mut Vec<String>, example: &Example, outcome: &Outcome) {
    if outcome.exit != Exit::Returned(example.expected.code) {
        let why = outcome.failure.as_ref().map(|f| format!(" ({}: {})", f.function, f.failure)).unwrap_or_default();
        let ended = match &outcome.exit {
            Exit::Returned(code) => code.to_string(),
            Exit::Trapped(trap) => trap.to_string(),
        };
        found.push(format!("it left with {ended}{why}, expected {}", example.expected.code));
    }
    let texts = outcome.texts();
    match &example.expected.results {
        Results::Any => {}
        Results::Exactly(expected) if texts == *expected => {}
        Results::Exactly(expected) => found.push(format!("it put out {texts:?}, expected {expected:?}")),
        Results::Containing(parts) => {
            for part in parts.iter().filter(|part| !texts.iter().any(|text| text.contains(part.as_str()))) {
                found.push(format!("no result of {texts:?} contains {part:?}"));
            }
        }
    }
}
