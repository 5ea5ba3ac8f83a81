//! Examples: a call, its fixtures and its expected result.

use std::collections::BTreeMap;

use serde::Deserialize;
use wattle_rt::Code;

/// An `[[example]]`: a call to the program, with fixtures and the expected result. It is run as a
/// test and shown in the manual.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The number of the line on which the example starts, counted from 1.
    pub line: usize,
    /// The arguments of the call, excluding defaults.
    pub args: Vec<String>,
    /// The fixtures for the call.
    pub fixtures: Fixtures,
    /// The expected result.
    pub expected: Expected,
}

/// The complete environment of an example's call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fixtures {
    /// The files by path, relative to the root of the run's files.
    pub files: BTreeMap<String, String>,
    /// The session's state, by key.
    pub kv: BTreeMap<String, String>,
    /// The tenant's memory items, oldest first.
    pub memory: Vec<String>,
    /// The responses to HTTP requests. A request without a response fails. Several responses for
    /// the same method and URL are used in order, and the last response is repeated.
    pub http: Vec<HttpAnswer>,
    /// The time that the clock shows, in RFC 3339 format. If it is `None`, the clock shows the real
    /// time.
    pub now: Option<String>,
    /// The numbers that the random generator returns, in order. Each number is reduced to the
    /// requested range, and the last number is repeated. If there are none, random numbers are
    /// unpredictable.
    pub random: Vec<u32>,
    /// The model's answers to questions from programs. A question without an answer fails.
    pub ai: Vec<AiAnswer>,
    /// The results of shell command lines. A command line without a result fails.
    pub shell: Vec<ShellAnswer>,
}

/// The result of a shell command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellAnswer {
    /// The command line, exactly as written.
    pub line: String,
    /// The standard output of the command.
    #[serde(default)]
    pub stdout: String,
    /// The standard error of the command.
    #[serde(default)]
    pub stderr: String,
    /// The exit status. 0 by default.
    #[serde(default)]
    pub status: u8,
}

/// A model's answer to a question from a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "an answer is a text, or a table with `when` and `reply`")]
pub enum AiAnswer {
    /// The answer to the next question. Answers of this kind are used in order, each only once.
    Next(String),
    /// The answer to every question whose text or instruction contains `when`.
    When {
        /// The substring to look for.
        when: String,
        /// The model's answer to such a question.
        reply: String,
    },
}

/// A response to HTTP requests that have the given method and URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The URL of the request.
    pub url: String,
    /// The method, in upper case. `GET` by default.
    pub method: String,
    /// The status code, from 100 to 599. 200 by default.
    pub status: u16,
    /// The response headers, by name.
    pub headers: BTreeMap<String, String>,
    /// The response body.
    pub body: String,
}

/// The expected result of an example's call.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The exit code of the program.
    pub code: Code,
    /// A substring of the reason for the failure, or `None` if the reason is not checked.
    pub reason: Option<String>,
    /// The expected results.
    pub results: Results,
    /// The contents of files after the call, by path. Other files may exist.
    pub files: BTreeMap<String, String>,
    /// The session's state after the call, by key. Other keys may exist.
    pub kv: BTreeMap<String, String>,
}

/// The expected results of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// Any results, including none.
    Any,
    /// Exactly these results, in this order.
    Exactly(Vec<String>),
    /// Results that together contain each of these strings.
    Containing(Vec<String>),
}
