//! Errors in suites, recordings and results files. This file contains all of their messages.

use std::fmt;
use std::path::{Path, PathBuf};

use strsim::osa_distance;
use wattle_agent::agents::{AgentProblem, Agents};
use wattle_agent::host::rt::truncate;

use crate::table::counted;

/// A hint that lists the keys for expectations.
pub(crate) const EXPECTATIONS: &str =
    "add `expect.answer`, `expect.files`, `expect.kv`, `expect.memory` or `expect.program`";

/// An error in a suite's file, a recording or a results file.
///
/// It is displayed as ``failed to load `eval/tasks/text/x.toml`, line 3: unknown key `promt` ``,
/// followed by a line with a hint if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    action: &'static str,
    path: PathBuf,
    line: Option<usize>,
    message: String,
    hint: Option<String>,
}

impl EvalError {
    /// Returns the path of the file or folder that contains the error.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the line number in the file, counted from 1, if the error has one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {} `{}`", self.action, self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for EvalError {}

impl EvalError {
    pub(crate) fn load(path: &Path, message: impl ToString) -> Self {
        EvalError {
            action: "load",
            path: path.to_owned(),
            line: None,
            message: message.to_string(),
            hint: None,
        }
    }

    pub(crate) fn write(path: &Path, message: impl ToString) -> Self {
        EvalError { action: "write", ..EvalError::load(path, message) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        EvalError { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn at(self, line: usize) -> Self {
        EvalError { line: Some(line), ..self }
    }

    /// Creates the error for a file that the TOML parser rejects. If the parser reports an unknown
    /// key, a hint lists the known keys.
    pub(crate) fn toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let line = error
            .span()
            .map(|span| 1 + text.get(..span.start).unwrap_or(text).matches('\n').count());
        let message = error.message();
        let error = if let Some((key, known)) = unknown_key(message) {
            let hint = match nearest(&key, &known) {
                Some(nearest) => format!(
                    "the nearest known key is `{nearest}`; known keys are {}",
                    known.join(", ")
                ),
                None => format!("known keys are {}", known.join(", ")),
            };
            EvalError::load(path, format!("unknown key `{key}`")).hint(hint)
        } else {
            EvalError::load(path, message.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        EvalError { line, ..error }
    }

    /// Creates the error for an invalid table in an agent's example. `number` is the number of the
    /// example, counted from 1, and `part` is the name of the table, such as `scene`.
    pub(crate) fn example(path: &Path, number: usize, part: &str, error: &toml::de::Error) -> Self {
        let error = EvalError::toml(path, "", error);
        let message = format!("example {number}: `{part}`: {}", error.message);
        EvalError { line: None, message, ..error }
    }

    /// Creates the error for a problem in an agent's file.
    pub(crate) fn agent(problem: AgentProblem) -> Self {
        let AgentProblem { path, line, message } = problem;
        EvalError { line, ..EvalError::load(&path, message) }
    }

    pub(crate) fn unknown_agent(path: &Path, name: &str, agents: &Agents) -> Self {
        let known: Vec<String> = agents.list().iter().map(|agent| agent.name.clone()).collect();
        EvalError::load(path, format!("there is no agent `{name}`")).hint(format!(
            "known agents are {}; those of a suite are files in its folder `agents`",
            known.join(", ")
        ))
    }

    /// Returns the error for a baseline evaluation of a task that names an agent.
    pub(crate) fn baseline_with_agent(dir: &Path, agent: &str) -> Self {
        let message = format!("the baseline has no agents, and a task is for `{agent}`");
        EvalError::load(dir, message).hint("leave out `--baseline` or `--agent`")
    }

    pub(crate) fn expects_nothing(path: &Path) -> Self {
        EvalError::load(path, "the task has no expectation, so every answer would pass")
            .hint(EXPECTATIONS)
    }

    pub(crate) fn has_attempts(path: &Path, count: usize) -> Self {
        let attempts = counted(count, "attempt");
        EvalError::write(path, format!("it has {attempts} of an earlier evaluation")).hint(
            "continue that evaluation with `--resume`, delete its attempts with `--fresh`, or \
             name another file with `--out FILE`",
        )
    }

    pub(crate) fn in_use(path: &Path) -> Self {
        EvalError::write(path, "another evaluation is writing it")
            .hint("wait for its end, or name another file with `--out FILE`")
    }

    pub(crate) fn no_tasks(path: &Path) -> Self {
        EvalError::load(path, "the folder contains no task").hint(
            "a task is a file `NAME.toml` in the folder, or in a subfolder, which is its kind",
        )
    }
}

/// Parses serde's message ``unknown field `x`, expected one of `a`, `b` ``. Returns the unknown key
/// and the known keys, or `None` for any other message.
fn unknown_key(message: &str) -> Option<(String, Vec<String>)> {
    let (key, rest) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    let key = truncate(key, 80).into_owned();
    Some((key, rest.split('`').skip(1).step_by(2).map(str::to_owned).collect()))
}

/// Returns the known word that is most similar to `word`, or `None` if there are no known words.
pub(crate) fn nearest<'k>(word: &str, known: &'k [String]) -> Option<&'k String> {
    known.iter().min_by_key(|known| osa_distance(word, known))
}
