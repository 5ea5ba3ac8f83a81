//! Examples: a call, the world that it meets, and what it gives.

use std::collections::BTreeMap;

use serde::Deserialize;
use wattle_rt::Code;

/// One `[[example]]`: a call of the program on fixtures, with what is expected of it. It runs as a test and shows in the manual.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The line of the file that it begins in.
    pub line: usize,
    /// The arguments as a caller gives them; defaults are not filled in.
    pub args: Vec<String>,
    /// The world that the call meets.
    pub fixtures: Fixtures,
    /// What the call gives.
    pub expected: Expected,
}

/// The world that an example's call meets; what is not here is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fixtures {
    /// Files by path, relative to the top of the run's files.
    pub files: BTreeMap<String, String>,
    /// The session's state by key.
    pub kv: BTreeMap<String, String>,
    /// Answers to HTTP requests. A request that none of them is for fails; several for one method and URL are given in
    /// their order, the last one again and again.
    pub http: Vec<HttpAnswer>,
    /// The time that the clock shows, in RFC 3339; it goes on as ever where the example does not say.
    pub now: Option<String>,
    /// What random numbers are made from: the number, cut to what is asked for; in turn, the last one again and again.
    /// Unpredictable where the example has none.
    pub random: Vec<u32>,
    /// The answers to what programs ask of a model. A call that none of them is for fails.
    pub ai: Vec<AiAnswer>,
    /// What lines of the shell leave behind. A line that none of them is for fails.
    pub shell: Vec<ShellAnswer>,
}

/// What a line of the shell leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellAnswer {
    /// The line, as it is written.
    pub line: String,
    /// Its standard output.
    #[serde(default)]
    pub stdout: String,
    /// Its standard error.
    #[serde(default)]
    pub stderr: String,
    /// Its status; 0 where the example does not say.
    #[serde(default)]
    pub status: u8,
}

/// An answer to what a program asks of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "an answer is a text, or a table with `when` and `reply`")]
pub enum AiAnswer {
    /// The next answer to whatever is asked; each is given once, in their order.
    Next(String),
    /// The answer to everything that is asked about a text, or with an instruction, that has `when` in it.
    When {
        /// What is looked for, as it is written.
        when: String,
        /// The answer.
        reply: String,
    },
}

/// An answer to the HTTP requests of one method and URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The URL that is asked for.
    pub url: String,
    /// The method in capital letters; `GET` where the example does not say.
    pub method: String,
    /// The status, 100 to 599; 200 where the example does not say.
    pub status: u16,
    /// Its headers by name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// What an example's call gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What the program leaves with.
    pub code: Code,
    /// What it puts out.
    pub results: Results,
    /// Files by path that have this content afterwards; others may be there.
    pub files: BTreeMap<String, String>,
    /// State by key that has this value afterwards; other keys may be there.
    pub kv: BTreeMap<String, String>,
}

/// What is expected of a call's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Results {
    /// Nothing is said of them.
    Any,
    /// Exactly these, in this order.
    Exactly(Vec<String>),
    /// Each of these texts occurs in some result.
    Containing(Vec<String>),
}
