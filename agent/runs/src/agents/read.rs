//! Parsing and validation of agents and traits.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use wattle_catalog::nearest_key;
use wattle_model::output::OutputSchema;
use wattle_rt::truncate;

use super::spec::AgentSpec;
use super::traits::TraitSpec;

/// Maximum size of an agent or trait file, in bytes.
pub(super) const MAX_FILE: u64 = 256 << 10;

/// Name of the output schema, for providers that require a name.
pub(super) const OUTPUT: &str = "answer";

/// Maximum length of an agent's name, in bytes.
const MAX_NAME: usize = 64;

/// Maximum number of programs that are functions of their own. Endpoints accept at most 128
/// functions, and a few of them are not programs.
const MAX_FUNCTIONS: usize = 120;

/// Maximum length of a TOML error message, in characters.
const MAX_MESSAGE: usize = 300;

/// The reason why a declaration is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The problem and how to fix it.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for SpecError {}

impl AgentSpec {
    /// Reads an agent from TOML.
    ///
    /// # Errors
    /// If the text is not TOML, or it has an unknown key or an invalid value.
    pub fn parse(text: &str) -> Result<AgentSpec, SpecError> {
        let spec: AgentSpec = of_toml(text)?;
        spec.check().map_err(|(key, message)| SpecError {
            line: line_of(text, key),
            message: format!("`{key}`: {message}"),
        })?;
        Ok(spec)
    }

    /// Reads an agent from JSON, such as the body of a request.
    ///
    /// # Errors
    /// If the JSON has an unknown key or an invalid value.
    pub fn of_json(json: &Json) -> Result<AgentSpec, SpecError> {
        let spec: AgentSpec = serde_json::from_value(json.clone())
            .map_err(|error| SpecError { line: None, message: explain(&error.to_string()) })?;
        match spec.check() {
            Ok(()) => Ok(spec),
            Err((key, why)) => Err(SpecError { line: None, message: format!("`{key}`: {why}") }),
        }
    }

    /// Checks the values of the declaration. The error consists of the key with the invalid value,
    /// and a message.
    fn check(&self) -> Result<(), (&'static str, String)> {
        if !is_name(&self.name) {
            let message = "a name starts with a lowercase letter and contains only lowercase \
                           letters, digits, `_`, `-` and `.`, at most 64 characters";
            return Err(("name", message.to_owned()));
        }
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return Err(("temperature", "expected a number from 0 to 2".to_owned()));
        }
        if self.max_tokens == Some(0) {
            return Err(("max_tokens", "expected a number from 1 on".to_owned()));
        }
        if let Some(schema) = &self.output_schema {
            let schema = OutputSchema::new(OUTPUT, schema.clone());
            schema.map_err(|why| ("output_schema", why.to_string()))?;
        }
        if self.repair.is_some() && self.output_schema.is_none() {
            return Err(("repair", "there is no `output_schema`".to_owned()));
        }
        if self.functions.len() > MAX_FUNCTIONS {
            return Err(("functions", format!("expected at most {MAX_FUNCTIONS} names")));
        }
        let mut names: Vec<String> = self.delegates.iter().map(|one| one.program()).collect();
        names.sort();
        let twice = names.iter().zip(names.iter().skip(1)).find(|(name, next)| name == next);
        if let Some((name, _)) = twice {
            return Err(("delegates", format!("two delegates have the name `{name}`")));
        }
        Ok(())
    }
}

impl TraitSpec {
    /// Reads a trait from TOML.
    ///
    /// # Errors
    /// If the text is not TOML, or it has an unknown key or an invalid value.
    pub fn parse(text: &str) -> Result<TraitSpec, SpecError> {
        let spec: TraitSpec = of_toml(text)?;
        match spec.check() {
            Ok(()) => Ok(spec),
            Err(message) => Err(SpecError { line: line_of(text, "name"), message }),
        }
    }
}

/// Parses a declaration from TOML. Rewrites parser errors for users.
fn of_toml<T: DeserializeOwned>(text: &str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        SpecError { line, message: explain(error.message()) }
    })
}

/// Returns the name that an invalid file seems to declare, or the file name without its extension
/// if the text contains no valid name.
pub(super) fn seeming_name(path: &Path, text: &str) -> String {
    let of = |toml: &str| {
        let table: toml::Table = toml::from_str(toml).ok()?;
        table.get("name")?.as_str().map(str::to_owned)
    };
    let mut lines = text.lines().filter(|line| line.trim_start().starts_with("name"));
    let name = of(text).or_else(|| lines.find_map(of)).filter(|name| is_name(name));
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    name.unwrap_or_else(stem)
}

/// Returns true if `text` is a valid name for an agent.
pub fn is_name(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b);
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(is_allowed)
}

/// Rewrites a parser error for users.
fn explain(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let message = truncate(message.lines().next().unwrap_or_default(), MAX_MESSAGE);
    match (nearest_key(&message), message.strip_prefix("unknown field ")) {
        (Some(nearest), Some(rest)) => {
            let key = rest.split(", expected").next().unwrap_or(rest);
            format!("unknown key {key}; did you mean `{nearest}`?")
        }
        (Some(nearest), None) => format!("{message}; did you mean `{nearest}`?"),
        (None, _) => match message.strip_prefix("missing field ") {
            Some(key) => format!("the key {key} is missing"),
            None => message.into_owned(),
        },
    }
}

/// Returns the number of the first line that sets a key, counted from 1, or `None` if no line sets
/// it.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        let line = line.trim_start().trim_start_matches('[');
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(['=', '.', ']']))
    };
    text.lines().position(sets).map(|at| at + 1)
}
