//! Execution of catalog examples. The program of an example runs in the sandbox and can access only
//! the example's fixtures.

use std::fmt;
use std::sync::Arc;

use wattle_catalog::{Entry, Example, Results};
use wattle_rt::{Exit, Outcome};
use wattle_runs::{Host, with_account};

use crate::scene::ExampleWorld;
use crate::wiring::Resources;

/// The error for an example that could not be executed, or whose result differs from its
/// expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleFault {
    /// The line of the file where the example begins.
    pub line: usize,
    /// The differences from the expected result.
    pub differences: Vec<Difference>,
}

/// A difference between an example's result and its expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the value that differs: `code`, `reason`, `results`, `result`, `file a.txt` or
    /// `key a`. It is `run` if the example could not be executed.
    pub what: String,
    /// The actual value, or the reason why the example could not be executed.
    pub found: String,
    /// The expected value, or `None` if the example could not be executed.
    pub expected: Option<String>,
}

impl Difference {
    fn new(
        what: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Difference {
        Difference { what: what.into(), found: found.into(), expected: Some(expected.into()) }
    }

    /// Creates the difference for an example that could not be executed.
    fn not_run(why: impl Into<String>) -> Difference {
        Difference { what: "run".to_owned(), found: why.into(), expected: None }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expected {
            Some(expected) => {
                write!(f, "{}: found {:?}, expected {expected:?}", self.what, self.found)
            }
            None => write!(f, "{}: {}", self.what, self.found),
        }
    }
}

impl fmt::Display for ExampleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.differences.iter().map(ToString::to_string).collect();
        write!(f, "the example at line {}: {}", self.line, each.join("; "))
    }
}

impl std::error::Error for ExampleFault {}

/// Runs one example of a program and compares its result with the expectation. The example uses
/// only the host's runtime, catalog and manual.
///
/// # Errors
/// If a result differs from the expected one, or the program could not run. The error lists the
/// differences or gives the reason.
pub async fn check_example(
    host: &Host,
    entry: &Entry,
    example: &Example,
) -> Result<(), ExampleFault> {
    let differences = differences(host, entry, example)
        .await
        .unwrap_or_else(|why| vec![Difference::not_run(why)]);
    if differences.is_empty() {
        Ok(())
    } else {
        Err(ExampleFault { line: example.line, differences })
    }
}

async fn differences(
    host: &Host,
    entry: &Entry,
    example: &Example,
) -> Result<Vec<Difference>, String> {
    let args = entry.arguments(&example.args).map_err(|e| e.to_string())?;
    let runtime = host.runtime();
    let program = host.prepare(entry.source()).await.map_err(|d| d.to_string())?;
    let scene = ExampleWorld::new(&example.fixtures).await?;
    let access = Resources { trusted: Some(scene.trusted()), ..scene.access(host) };
    let grants = with_account(runtime, &Arc::new(scene.grants(access)));
    let grants = grants.map_err(|error| error.to_string())?;
    let time = entry.meta().timeout.unwrap_or(runtime.limits().time);
    let outcome =
        runtime.run_within(&program, &grants, args, time).await.map_err(|e| e.to_string())?;

    let mut found = Vec::new();
    compare_outcome(&mut found, example, &outcome);
    let mut compare = |what: String, actual: Result<String, String>, expected: &String| match actual
    {
        Ok(actual) if actual == *expected => {}
        Ok(actual) => found.push(Difference::new(what, actual, expected)),
        Err(why) => found.push(Difference::new(what, format!("({why})"), expected)),
    };
    for (path, expected) in &example.expected.files {
        compare(format!("file {path}"), scene.file(path), expected);
    }
    for (key, expected) in &example.expected.kv {
        let value = scene.value(key).await?.ok_or_else(|| "absent".to_owned());
        compare(format!("key {key}"), value, expected);
    }
    Ok(found)
}

fn compare_outcome(found: &mut Vec<Difference>, example: &Example, outcome: &Outcome) {
    let expected = example.expected.code;
    if outcome.exit != Exit::Returned(expected) {
        let why = outcome
            .failure
            .as_ref()
            .map(|f| format!(", from {}: {}", f.function.unwrap_or("fail"), f.failure.reason));
        let ended = match &outcome.exit {
            Exit::Returned(code) => code.to_string(),
            Exit::Trapped(trap) => trap.to_string(),
        };
        found.push(Difference::new("code", ended + &why.unwrap_or_default(), expected.to_string()));
    }
    if let Some(expected) = &example.expected.reason {
        let reason = outcome.failure.as_ref().map_or("none", |f| f.failure.reason.as_str());
        if !reason.contains(expected.as_str()) {
            found.push(Difference::new("reason", reason, format!("a text with {expected:?}")));
        }
    }
    let texts = outcome.texts();
    match &example.expected.results {
        Results::Any => {}
        Results::Exactly(expected) if texts == *expected => {}
        Results::Exactly(expected) => match (texts.as_slice(), expected.as_slice()) {
            ([found_one], [expected_one]) => {
                found.push(Difference::new("result", found_one, expected_one))
            }
            (texts, expected) => {
                found.push(Difference::new("results", listed(texts), listed(expected)))
            }
        },
        Results::Containing(parts) => {
            for part in
                parts.iter().filter(|part| !texts.iter().any(|text| text.contains(part.as_str())))
            {
                found.push(Difference::new(
                    "results",
                    listed(&texts),
                    format!("a text with {part:?}"),
                ));
            }
        }
    }
}

/// Formats results as a string, with one quoted result per line. Returns `none` if there are no
/// results.
fn listed(results: &[String]) -> String {
    match results {
        [] => "none".to_owned(),
        results => {
            results.iter().map(|result| format!("{result:?}")).collect::<Vec<_>>().join("\n")
        }
    }
}
