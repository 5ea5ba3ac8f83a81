//! Expectations for the answer, the files and the state after an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value as Json;
use wattle_agent::rt::{Code, Exit, quote};
use wattle_agent::{Host, Scene};

use crate::number::numbers;

/// The expectations of a task. An attempt must meet all of them.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// The rule for the answer.
    pub answer: Option<Rule>,
    /// The rules for files, by path.
    pub files: BTreeMap<String, Rule>,
    /// The rules for values of the state, by key.
    pub kv: BTreeMap<String, Rule>,
    /// A program that checks the result. Its argument 0 is the answer, and it can read the files
    /// and the state. Each of its results is a problem, and so is an exit code other than 0.
    pub program: Option<String>,
}

/// Conditions that a text must meet. Leading and trailing whitespace and the kind of line ending
/// are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The exact text.
    equals: Option<String>,
    /// Strings that the text must contain.
    contains: Texts,
    /// Strings that the text must not contain.
    lacks: Texts,
    /// A regular expression that must match somewhere in the text.
    matches: Option<Pattern>,
    /// The only number in the text.
    number: Option<f64>,
    /// Maximum difference from `number`.
    within: f64,
    /// Values in the text's JSON, by JSON pointer. `""` is the whole document.
    json: BTreeMap<String, Value>,
    /// If true, the file or key must not exist.
    absent: bool,
}

/// One string or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Texts {
    fn list(&self) -> &[String] {
        match self {
            Texts::None => &[],
            Texts::One(one) => std::slice::from_ref(one),
            Texts::Many(many) => many,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Regex::new(&text).map(Pattern).map_err(|why| format!("invalid regular expression: {why}"))
    }
}

/// A JSON value written in TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "toml::Value")]
struct Value(Json);

impl TryFrom<toml::Value> for Value {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let nested = |value| Value::try_from(value).map(|Value(json)| json);
        Ok(Value(match value {
            toml::Value::String(text) => text.into(),
            toml::Value::Integer(n) => n.into(),
            toml::Value::Float(x) => x.into(),
            toml::Value::Boolean(b) => b.into(),
            toml::Value::Datetime(_) => {
                return Err("JSON has no dates; write the date in quotes".to_owned());
            }
            toml::Value::Array(items) => {
                Json::Array(items.into_iter().map(nested).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(entries) => Json::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| Ok((key, nested(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
        }))
    }
}

impl Expectation {
    /// Returns true if there is no expectation.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let says = |rule: &Rule| !rule.is_empty();
        !(self.answer.as_ref().is_some_and(says)
            || self.files.values().any(says)
            || self.kv.values().any(says)
            || self.program.is_some())
    }

    /// Returns the expectations that are not met, one sentence each.
    ///
    /// # Errors
    /// The expectation's program does not compile, or the engine fails.
    pub async fn problems(
        &self,
        host: &Host,
        scene: &Scene,
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
        if let Some(source) = &self.program {
            problems.extend(run_check(source, host, scene, answer).await?);
        }
        Ok(problems)
    }
}

/// Runs the expectation's program and returns the problems that it reports.
async fn run_check(
    source: &str,
    host: &Host,
    scene: &Scene,
    answer: &str,
) -> Result<Vec<String>, String> {
    let wrong = |why: String| format!("failed to run the expectation's program: {why}");
    let program = host.runtime().prepare(source).await.map_err(|why| wrong(why.to_string()))?;
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

impl Rule {
    fn is_empty(&self) -> bool {
        let Rule { equals, contains, lacks, matches, number, within: _, json, absent } = self;
        let texts = contains.list().is_empty() && lacks.list().is_empty();
        equals.is_none()
            && texts
            && matches.is_none()
            && number.is_none()
            && json.is_empty()
            && !absent
    }

    /// Returns the conditions that the text does not meet, one sentence each. `None` is a file or
    /// key that does not exist.
    #[must_use]
    pub fn problems(&self, subject: &str, text: Option<&str>) -> Vec<String> {
        let Some(text) = text else {
            return if self.absent {
                Vec::new()
            } else {
                vec![format!("{subject} does not exist")]
            };
        };
        if self.absent {
            return vec![format!("{subject} exists, but should not")];
        }
        let text = normalised(text);
        let mut problems = Vec::new();
        if let Some(expected) =
            self.equals.as_deref().map(normalised).filter(|expected| *expected != text)
        {
            problems.push(format!(
                "{subject} is {}, expected {}",
                quoted(&text),
                quoted(&expected)
            ));
        }
        for part in
            self.contains.list().iter().filter(|part| !text.contains(normalised(part).as_str()))
        {
            problems.push(format!(
                "{subject} does not contain {}: {}",
                quoted(part),
                quoted(&text)
            ));
        }
        for part in self.lacks.list().iter().filter(|part| text.contains(normalised(part).as_str()))
        {
            problems.push(format!(
                "{subject} contains {}, but should not: {}",
                quoted(part),
                quoted(&text)
            ));
        }
        if let Some(Pattern(pattern)) =
            self.matches.as_ref().filter(|Pattern(pattern)| !pattern.is_match(&text))
        {
            problems.push(format!("{subject} does not match `{pattern}`: {}", quoted(&text)));
        }
        problems.extend(
            self.number.and_then(|expected| wrong_number(subject, &text, expected, self.within)),
        );
        problems.extend(wrong_json(subject, &text, &self.json));
        problems
    }
}

/// Returns a text without the differences that are ignored.
fn normalised(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

/// Returns a text in quotes, for a message.
fn quoted(text: &str) -> String {
    quote(text, 200)
}

fn wrong_number(subject: &str, text: &str, expected: f64, within: f64) -> Option<String> {
    let mut found = numbers(text);
    found.dedup();
    match found.as_slice() {
        // Rounding of decimal fractions is ignored.
        [number] if (number - expected).abs() <= within + expected.abs() * 1e-9 => None,
        [number] => Some(format!("{subject} has the number {number}, expected {expected}")),
        [] => Some(format!("{subject} has no number, expected {expected}: {}", quoted(text))),
        many => Some(format!(
            "{subject} has {} numbers, expected only {expected}: {}",
            many.len(),
            quoted(text)
        )),
    }
}

fn wrong_json(subject: &str, text: &str, expected: &BTreeMap<String, Value>) -> Vec<String> {
    if expected.is_empty() {
        return Vec::new();
    }
    let document: Json = match serde_json::from_str(unfenced(text)) {
        Ok(document) => document,
        Err(why) => return vec![format!("{subject} is not JSON ({why}): {}", quoted(text))],
    };
    let wrong = |(pointer, Value(expected)): (&String, &Value)| match document.pointer(pointer) {
        Some(found) if is_same(found, expected) => None,
        Some(found) => Some(format!("{subject} has {found} at `{pointer}`, expected {expected}")),
        None => Some(format!("{subject} has nothing at `{pointer}`, expected {expected}")),
    };
    expected.iter().filter_map(wrong).collect()
}

/// Returns the text without a fence around it, which models often add.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.and_then(|inside| inside.split_once('\n')).map_or(text, |(_, inside)| inside)
}

/// Returns true if two values are equal. The notation of numbers is ignored.
fn is_same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-9,
            _ => a == b,
        },
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of problems of a text.
    fn problems(rule: &str, text: &str) -> usize {
        let rule: Rule = toml::from_str(rule).unwrap_or_else(|why| panic!("{rule}: {why}"));
        assert!(!rule.is_empty(), "{rule:?}");
        rule.problems("it", Some(text)).len()
    }

    #[test]
    fn rules_accept_right_answers_and_reject_similar_ones() {
        for (rule, right, wrong) in [
            ("equals = \"a\\nb\"", &["a\r\nb", " a\nb\n"][..], &["a b", "A\nb", ""][..]),
            ("equals = ''", &["", " \n"], &["x"]),
            ("contains = 'tea'", &["hot tea"], &["te a"]),
            ("contains = ['a', 'b']", &["b a"], &["a"]),
            ("lacks = ['a', 'b']", &["c"], &["cab", "a"]),
            ("matches = '^\\d+ min$'", &["12 min"], &["about 12 min"]),
            (
                "number = 4",
                &["4", "It is 4.", "4.0", "4 (yes, 4)"],
                &["5", "four", "between 3 and 4", "2 + 2 = 4", "-4"],
            ),
            ("number = 2.5\nwithin = 0.1", &["2.45", "2.6 km"], &["2.3", "2.7"]),
            ("number = 1234.5", &["$1,234.50", "1234.5"], &["1234"]),
            ("number = 0.1", &["0.1"], &["0.2"]),
            (
                "json = { '/a/0' = 1, '/b' = 'x' }",
                &["{\"a\":[1.0],\"b\":\"x\",\"c\":0}"],
                &["{\"a\":[2],\"b\":\"x\"}"],
            ),
            (
                "json = { '' = [1, { a = true }] }",
                &["[1,{\"a\":true}]", "```json\n[1, {\"a\": true}]\n```"],
                &["[1]"],
            ),
            ("json = { '' = [1, 2] }", &["[1,2]"], &["[2,1]", "1, 2", "[1,2,3]"]),
        ] {
            for text in right {
                assert_eq!(problems(rule, text), 0, "{rule}: {text:?}");
            }
            for text in wrong {
                assert_ne!(problems(rule, text), 0, "{rule}: {text:?}");
            }
        }
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(problems("contains = ['a', 'b']\nnumber = 1\njson = { '/x' = 1 }", "c"), 4);
        let rule: Rule = toml::from_str("absent = true").unwrap();
        assert!(rule.problems("it", None).is_empty());
        assert_eq!(
            rule.problems("the file `a`", Some("x")),
            ["the file `a` exists, but should not"]
        );
        let rule: Rule = toml::from_str("equals = 'x'").unwrap();
        assert_eq!(rule.problems("the file `a`", None), ["the file `a` does not exist"]);
        assert_eq!(rule.problems("it", Some("y")), ["it is \"y\", expected \"x\""]);
    }

    #[test]
    fn invalid_rules_are_rejected() {
        for rule in [
            "equal = 'x'",
            "matches = '('",
            "json = { '/a' = 2024-01-01 }",
            "contains = 3",
            "number = 'x'",
        ] {
            assert!(toml::from_str::<Rule>(rule).is_err(), "{rule}");
        }
        assert!(toml::from_str::<Rule>("within = 1").unwrap().is_empty());
    }
}
