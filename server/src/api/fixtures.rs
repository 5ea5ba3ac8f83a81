//! Fixtures: the environment of a program that has no access to external resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::catalog::{AiAnswer, Fixtures, HttpAnswer, ShellAnswer};

/// The complete environment of a program. A call without a matching fixture fails. The fields are
/// the same as in an `[[example]]` of a program's front matter.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FixtureSet {
    /// File contents by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// State values by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kv: BTreeMap<String, String>,
    /// Memory items, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<String>,
    /// Responses to HTTP requests. Responses to the same method and URL are used in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    http: Vec<HttpFixture>,
    /// The clock's time, in RFC 3339 format. Default: the real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    /// Random numbers, used in order. Default: unpredictable numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    random: Vec<u32>,
    /// The model's answers to questions from programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ai: Vec<AiFixture>,
    /// Results of shell lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shell: Vec<ShellFixture>,
}

/// A response to an HTTP request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HttpFixture {
    /// The URL of the request.
    url: String,
    /// The method. Default: `GET`.
    #[serde(default = "get")]
    method: String,
    /// The status. Default: 200.
    #[serde(default = "success")]
    status: u16,
    /// The headers.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    body: String,
}

/// An answer from the model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an answer is a text, or an object with `when` and `reply`")]
enum AiFixture {
    /// The answer to the next question.
    Next(String),
    /// The answer to every question that contains a string.
    When {
        /// The string that the question contains.
        when: String,
        /// The answer.
        reply: String,
    },
}

/// The result of a shell line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShellFixture {
    /// The line.
    line: String,
    /// The standard output.
    #[serde(default)]
    stdout: String,
    /// The standard error.
    #[serde(default)]
    stderr: String,
    /// The exit status. Default: 0.
    #[serde(default)]
    status: u8,
}

fn get() -> String {
    "GET".to_owned()
}

fn success() -> u16 {
    200
}

impl From<FixtureSet> for Fixtures {
    fn from(set: FixtureSet) -> Fixtures {
        let http = |one: HttpFixture| HttpAnswer {
            url: one.url,
            method: one.method.to_uppercase(),
            status: one.status,
            headers: one.headers,
            body: one.body,
        };
        let ai = |one: AiFixture| match one {
            AiFixture::Next(reply) => AiAnswer::Next(reply),
            AiFixture::When { when, reply } => AiAnswer::When { when, reply },
        };
        let shell = |one: ShellFixture| ShellAnswer {
            line: one.line,
            stdout: one.stdout,
            stderr: one.stderr,
            status: one.status,
        };
        Fixtures {
            files: set.files,
            kv: set.kv,
            memory: set.memory,
            http: set.http.into_iter().map(http).collect(),
            now: set.now,
            random: set.random,
            ai: set.ai.into_iter().map(ai).collect(),
            shell: set.shell.into_iter().map(shell).collect(),
        }
    }
}

impl From<&Fixtures> for FixtureSet {
    fn from(fixtures: &Fixtures) -> FixtureSet {
        let http = |one: &HttpAnswer| HttpFixture {
            url: one.url.clone(),
            method: one.method.clone(),
            status: one.status,
            headers: one.headers.clone(),
            body: one.body.clone(),
        };
        let ai = |one: &AiAnswer| match one.clone() {
            AiAnswer::Next(reply) => AiFixture::Next(reply),
            AiAnswer::When { when, reply } => AiFixture::When { when, reply },
        };
        let shell = |one: &ShellAnswer| ShellFixture {
            line: one.line.clone(),
            stdout: one.stdout.clone(),
            stderr: one.stderr.clone(),
            status: one.status,
        };
        FixtureSet {
            files: fixtures.files.clone(),
            kv: fixtures.kv.clone(),
            memory: fixtures.memory.clone(),
            http: fixtures.http.iter().map(http).collect(),
            now: fixtures.now.clone(),
            random: fixtures.random.clone(),
            ai: fixtures.ai.iter().map(ai).collect(),
            shell: fixtures.shell.iter().map(shell).collect(),
        }
    }
}
