//! Examples: a call, its fixtures and its expected result.

use std::collections::BTreeMap;

use serde::Deserialize;
use wattle_rt::Code;

/// An `[[example]]`: a call to the program with fixtures, and the expected result. It is run as a
/// test and shown in the manual.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The line of the file where the example starts.
    pub line: usize,
    /// The arguments of the call, without defaults.
    pub args: Vec<String>,
    /// The fixtures of the call.
    pub fixtures: Fixtures,
    /// The expected result.
    pub expected: Expected,
}

/// The complete environment of an example's call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fixtures {
    /// The files by path, relative to the top of the run's files.
    pub files: BTreeMap<String, String>,
    /// The session's state by key.
    pub kv: BTreeMap<String, String>,
    /// The items of the tenant's memory, oldest first.
    pub memory: Vec<String>,
    /// The responses to HTTP requests. A request without a response fails. Several responses for
    /// the same method and URL are used in order, and the last one is repeated.
    pub http: Vec<HttpAnswer>,
    /// The time of the clock, in RFC 3339. Without it, the clock shows the real time.
    pub now: Option<String>,
    /// The numbers that the random generator returns in order, reduced to the requested range. The
    /// last one is repeated. Without them, random numbers are unpredictable.
    pub random: Vec<u32>,
    /// The model's answers to programs. A call without an answer fails.
    pub ai: Vec<AiAnswer>,
    /// The results of shell lines. A line without a result fails.
    pub shell: Vec<ShellAnswer>,
}

/// The result of a shell line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellAnswer {
    /// The line, exactly as written.
    pub line: String,
    /// The standard output.
    #[serde(default)]
    pub stdout: String,
    /// The standard error.
    #[serde(default)]
    pub stderr: String,
    /// The exit status. Default 0.
    #[serde(default)]
    pub status: u8,
}

/// An answer from the model to a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "an answer is a text, or a table with `when` and `reply`")]
pub enum AiAnswer {
    /// The answer to the next question. Answers of this kind are used in order, each once.
    Next(String),
    /// The answer to every question whose text or instruction contains `when`.
    When {
        /// The string to look for.
        when: String,
        /// The answer.
        reply: String,
    },
}

/// A response to HTTP requests that have the given method and URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The URL of the request.
    pub url: String,
    /// The method in upper case. Default `GET`.
    pub method: String,
    /// The status, 100 to 599. Default 200.
    pub status: u16,
    /// The headers by name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// The expected result of an example's call.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The code that the program returns.
    pub code: Code,
    /// A part of the expected reason for the failure, or `None` if the reason is not checked.
    pub reason: Option<String>,
    /// The results that it prints.
    pub results: Results,
    /// The content of files after the call, by path. There may be other files.
    pub files: BTreeMap<String, String>,
    /// The values of state keys after the call. There may be other keys.
    pub kv: BTreeMap<String, String>,
}

/// The expected results of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// Any results.
    Any,
    /// Exactly these, in this order.
    Exactly(Vec<String>),
    /// Results that contain each of these strings.
    Containing(Vec<String>),
}
