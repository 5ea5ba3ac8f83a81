//! Catalog examples, run for real: the program in the sandbox, the world around it from the example's fixtures.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_capability::Answer;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_capability::egress::{HeaderMap, HeaderValue, header};
use wattle_capability::files::Files;
use wattle_capability::http;
use wattle_capability::kv::{Backend as _, InMemory};
use wattle_catalog::{Entry, Example, HttpAnswer, Results};
use wattle_rt::{Code, Exit, Failure, Outcome};

use crate::{Access, Host};

/// Bytes that an example may write.
const FILE_BYTES: u64 = 64 << 20;

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
pub async fn check_example(host: &Host, entry: &Entry, example: &Example) -> Result<(), ExampleFault> {
    let found = match differences(host, entry, example).await {
        Ok(found) => found,
        Err(why) => vec![why],
    };
    if found.is_empty() { Ok(()) } else { Err(ExampleFault { line: example.line, found }) }
}

async fn differences(host: &Host, entry: &Entry, example: &Example) -> Result<Vec<String>, String> {
    let args = entry.arguments(&example.args).map_err(|e| e.to_string())?;
    let runtime = host.runtime();
    let program = runtime.prepare(entry.source()).await.map_err(|d| d.to_string())?;
    let (files, state) = (Arc::new(Files::overlay(None, FILE_BYTES)), Arc::new(InMemory::default()));
    for (path, content) in &example.fixtures.files {
        files.write(path, content.as_bytes()).map_err(|e| e.to_string())?;
    }
    for (key, value) in example.fixtures.kv.clone() {
        state.update(key, Box::new(|_| Ok(Some(value.into_bytes())))).await.map_err(|e| e.to_string())?;
    }
    let access = Access {
        state: Arc::<InMemory>::clone(&state),
        network: Arc::new(Recorded(example.fixtures.http.clone())),
        inference: Some(Arc::new(Scripted(Mutex::new(example.fixtures.ai.clone().into())))),
        ..Access::new(host, Arc::clone(&files))
    };
    let grants = Arc::new(access.grants());
    let outcome = runtime.run(&program, &grants, args).await.map_err(|e| e.to_string())?;

    let mut found = Vec::new();
    compare_outcome(&mut found, example, &outcome);
    for (path, expected) in &example.expected.files {
        let content = files.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        compare(&mut found, &format!("the file `{path}`"), &content.map_err(|e| e.to_string()), expected);
    }
    for (key, expected) in &example.expected.kv {
        let value = state.get(key.clone()).await.map_err(|e| e.to_string())?;
        let value = value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok_or_else(|| "absent".to_owned());
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

/// Answers requests with what was recorded for them.
struct Recorded(Vec<HttpAnswer>);

impl http::Backend for Recorded {
    fn send(&self, request: http::Request) -> Answer<'_, http::Response> {
        let answer = self.0.iter().find(|a| a.url == request.url && a.method == request.method.as_str());
        let response = match answer {
            None => {
                let why = format!("the example has no answer to {} {}", request.method, request.url);
                Err(Failure::new(Code::EREMOTE, why))
            }
            Some(answer) => {
                let mut headers = HeaderMap::new();
                if let Some(kind) = answer.content_type.as_deref().and_then(|kind| HeaderValue::from_str(kind).ok()) {
                    headers.insert(header::CONTENT_TYPE, kind);
                }
                Ok(http::Response { status: answer.status, headers, body: answer.body.clone().into_bytes() })
            }
        };
        Box::pin(async { response })
    }
}

/// Gives the model's answers in their order; an answer for an embedding is a JSON array of numbers.
struct Scripted(Mutex<VecDeque<String>>);

impl Scripted {
    fn next(&self) -> Result<String, Failure> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| Failure::new(Code::EREMOTE, "the example has no further model answer"))
    }
}

impl Inference for Scripted {
    fn ask(&self, _question: Question) -> Answer<'_, Reply> {
        let answer = self.next().map(|text| Reply { text, tokens: 0 });
        Box::pin(async { answer })
    }

    fn embed(&self, _text: String) -> Answer<'_, Embedding> {
        let answer = self.next().and_then(|text| {
            let vector = serde_json::from_str(&text).map_err(|_| {
                Failure::new(Code::EREMOTE, "the example's next model answer is no JSON array of numbers")
            })?;
            Ok(Embedding { vector, tokens: 0 })
        });
        Box::pin(async { answer })
    }
}
