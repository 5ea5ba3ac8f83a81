//! Expectations: what must hold of the answer and of the world after an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value as Json;
use wattle_agent::rt::{Code, Exit, quote};
use wattle_agent::{Host, Scene};

use crate::number::numbers;

/// What must hold after an attempt; all of it.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// What the answer must be like.
    pub answer: Option<Rule>,
    /// What files must be like, by path.
    pub files: BTreeMap<String, Rule>,
    /// What values of the state must be like, by key.
    pub kv: BTreeMap<String, Rule>,
    /// A program that gets the answer as its argument 0 and finds the files and the state as they are now. What it puts out is wrong
    /// with them; so is a code other than 0.
    pub program: Option<String>,
}

/// What a text must be like; all that is said. Blanks at its ends do not count, nor how its lines end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The whole text.
    equals: Option<String>,
    /// Texts that stand in it.
    contains: Texts,
    /// Texts that do not.
    lacks: Texts,
    /// A regular expression that some part of it matches.
    matches: Option<Pattern>,
    /// The one number in it.
    number: Option<f64>,
    /// How far the number may be off.
    within: f64,
    /// Values in the JSON that it is, by JSON pointer; `""` is the whole.
    json: BTreeMap<String, Value>,
    /// That it is not there: a file, a key.
    absent: bool,
}

/// One text or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged, expecting = "expected a text, or an array of texts")]
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
        Regex::new(&text).map(Pattern).map_err(|why| format!("no regular expression: {why}"))
    }
}

/// A JSON value as TOML writes it.
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
            toml::Value::Datetime(_) => return Err("JSON has no dates; write it in quotes".to_owned()),
            toml::Value::Array(items) => Json::Array(items.into_iter().map(nested).collect::<Result<_, _>>()?),
            toml::Value::Table(entries) => Json::Object(
                entries.into_iter().map(|(key, value)| Ok((key, nested(value)?))).collect::<Result<_, String>>()?,
            ),
        }))
    }
}

impl Expectation {
    /// Whether nothing is expected at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let says = |rule: &Rule| !rule.is_empty();
        !(self.answer.as_ref().is_some_and(says)
            || self.files.values().any(says)
            || self.kv.values().any(says)
            || self.program.is_some())
    }

    /// What is not as it must be, one sentence each; nothing where all is well.
    ///
    /// # Errors
    /// Why it could not be found out: the expectation's own program is wrong, or the engine is broken.
    pub async fn problems(&self, host: &Host, scene: &Scene, answer: &str) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        if let Some(rule) = &self.answer {
            problems.extend(rule.problems("the answer", Some(answer)));
        }
        for (path, rule) in &self.files {
            problems.extend(rule.problems(&format!("the file `{path}`"), scene.file(path).ok().as_deref()));
        }
        for (key, rule) in &self.kv {
            problems.extend(rule.problems(&format!("the key `{key}`"), scene.value(key).await?.as_deref()));
        }
        if let Some(source) = &self.program {
            problems.extend(judged(source, host, scene, answer).await?);
        }
        Ok(problems)
    }
}

/// What the expectation's program has to say.
async fn judged(source: &str, host: &Host, scene: &Scene, answer: &str) -> Result<Vec<String>, String> {
    let wrong = |why: String| format!("the program of the expectation is wrong: {why}");
    let program = host.runtime().prepare(source).await.map_err(|why| wrong(why.to_string()))?;
    let grants = Arc::new(scene.grants(scene.access(host)));
    let outcome =
        host.runtime().run(&program, &grants, vec![answer.to_owned()]).await.map_err(|why| wrong(why.to_string()))?;
    let mut said = outcome.texts();
    match outcome.exit {
        Exit::Trapped(trap) => said.push(format!("the expectation's program came to no end: {trap}")),
        Exit::Returned(Code::SUCCESS) => {}
        Exit::Returned(code) => {
            let why = outcome.failure.map(|failed| format!(": {}", failed.failure.reason)).unwrap_or_default();
            said.push(format!("the expectation's program left with {code}{why}"));
        }
    }
    Ok(said)
}

impl Rule {
    fn is_empty(&self) -> bool {
        let Rule { equals, contains, lacks, matches, number, within: _, json, absent } = self;
        let texts = contains.list().is_empty() && lacks.list().is_empty();
        equals.is_none() && texts && matches.is_none() && number.is_none() && json.is_empty() && !absent
    }

    /// What is wrong with the text, one sentence each; `None` is a text that is not there.
    #[must_use]
    pub fn problems(&self, subject: &str, text: Option<&str>) -> Vec<String> {
        let Some(text) = text else {
            return if self.absent { Vec::new() } else { vec![format!("{subject} is not there")] };
        };
        if self.absent {
            return vec![format!("{subject} is there, and should not be")];
        }
        let text = plain(text);
        let mut problems = Vec::new();
        if let Some(expected) = self.equals.as_deref().map(plain).filter(|expected| *expected != text) {
            problems.push(format!("{subject} is {}, expected {}", quoted(&text), quoted(&expected)));
        }
        for part in self.contains.list().iter().filter(|part| !text.contains(plain(part).as_str())) {
            problems.push(format!("{subject} lacks {}: {}", quoted(part), quoted(&text)));
        }
        for part in self.lacks.list().iter().filter(|part| text.contains(plain(part).as_str())) {
            problems.push(format!("{subject} has {}, and should not: {}", quoted(part), quoted(&text)));
        }
        if let Some(Pattern(pattern)) = self.matches.as_ref().filter(|Pattern(pattern)| !pattern.is_match(&text)) {
            problems.push(format!("{subject} does not match `{pattern}`: {}", quoted(&text)));
        }
        problems.extend(self.number.and_then(|expected| wrong_number(subject, &text, expected, self.within)));
        problems.extend(wrong_json(subject, &text, &self.json));
        problems
    }
}

/// A text as it is compared.
fn plain(text: &str) -> String {
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
        // What a decimal fraction cannot say exactly does not count.
        [number] if (number - expected).abs() <= within + expected.abs() * 1e-9 => None,
        [number] => Some(format!("{subject} gives {number}, expected {expected}")),
        [] => Some(format!("{subject} has no number, expected {expected}: {}", quoted(text))),
        many => Some(format!("{subject} has {} numbers, expected {expected} alone: {}", many.len(), quoted(text))),
    }
}

fn wrong_json(subject: &str, text: &str, expected: &BTreeMap<String, Value>) -> Vec<String> {
    if expected.is_empty() {
        return Vec::new();
    }
    let document: Json = match serde_json::from_str(unfenced(text)) {
        Ok(document) => document,
        Err(why) => return vec![format!("{subject} is no JSON ({why}): {}", quoted(text))],
    };
    let wrong = |(pointer, Value(expected)): (&String, &Value)| match document.pointer(pointer) {
        Some(found) if same(found, expected) => None,
        Some(found) => Some(format!("{subject} has {found} at `{pointer}`, expected {expected}")),
        None => Some(format!("{subject} has nothing at `{pointer}`, expected {expected}")),
    };
    expected.iter().filter_map(wrong).collect()
}

/// The text in a fence that is around the whole, as models put it.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.and_then(|inside| inside.split_once('\n')).map_or(text, |(_, inside)| inside)
}

/// Whether two values are the same, however their numbers are written.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-9,
            _ => a == b,
        },
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many problems a rule has with a text.
    fn problems(rule: &str, text: &str) -> usize {
        let rule: Rule = toml::from_str(rule).unwrap_or_else(|why| panic!("{rule}: {why}"));
        assert!(!rule.is_empty(), "{rule:?}");
        rule.problems("it", Some(text)).len()
    }

    #[test]
    fn rules_tell_the_right_from_the_plausible() {
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
            ("json = { '/a/0' = 1, '/b' = 'x' }", &["{\"a\":[1.0],\"b\":\"x\",\"c\":0}"], &["{\"a\":[2],\"b\":\"x\"}"]),
            ("json = { '' = [1, { a = true }] }", &["[1,{\"a\":true}]", "```json\n[1, {\"a\": true}]\n```"], &["[1]"]),
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
    fn every_problem_is_told() {
        assert_eq!(problems("contains = ['a', 'b']\nnumber = 1\njson = { '/x' = 1 }", "c"), 4);
        let rule: Rule = toml::from_str("absent = true").unwrap();
        assert!(rule.problems("it", None).is_empty());
        assert_eq!(rule.problems("the file `a`", Some("x")), ["the file `a` is there, and should not be"]);
        let rule: Rule = toml::from_str("equals = 'x'").unwrap();
        assert_eq!(rule.problems("the file `a`", None), ["the file `a` is not there"]);
        assert_eq!(rule.problems("it", Some("y")), ["it is \"y\", expected \"x\""]);
    }

    #[test]
    fn rules_that_mean_nothing_are_refused() {
        for rule in ["equal = 'x'", "matches = '('", "json = { '/a' = 2024-01-01 }", "contains = 3", "number = 'x'"] {
            assert!(toml::from_str::<Rule>(rule).is_err(), "{rule}");
        }
        assert!(toml::from_str::<Rule>("within = 1").unwrap().is_empty());
    }
}
