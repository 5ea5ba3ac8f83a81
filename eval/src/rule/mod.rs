//! Rules: conditions on a string, strict about its value and lenient about its form.

mod clean;
mod csv;
mod item;
mod json;
mod list;
mod says;

use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;
use wattle_agent::host::rt::quote;

use crate::number::readings;
use clean::normalised;
use item::{Item, Items, is_near};

/// Conditions on a string. Leading and trailing whitespace, whitespace at line ends, and the kind
/// of line ending are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// The exact string.
    equals: Option<String>,
    /// Strings that the text must contain.
    contains: Texts,
    /// Strings that the text must not contain.
    lacks: Texts,
    /// A regular expression that must match somewhere in the text.
    matches: Option<Pattern>,
    /// The values that a short answer must name, in order. The answer may name no other values.
    says: Option<Items>,
    /// Other values that a short answer must not name.
    among: Texts,
    /// The items of a list, in order.
    list: Option<Vec<Item>>,
    /// The items of a list, in any order.
    set: Option<Vec<Item>>,
    /// The rows of a table in CSV.
    csv: Option<Vec<Vec<Item>>>,
    /// The number that the text must contain. The text may contain no other number.
    number: Option<f64>,
    /// Maximum difference between a number and its expected value.
    within: f64,
    /// Values in the text's JSON, by JSON pointer. The pointer `""` is the whole document.
    json: BTreeMap<String, json::Value>,
    /// The whole JSON document, written as JSON.
    document: Option<json::Document>,
    /// If true, the file or key must not exist.
    absent: bool,
}

/// A single string or several strings.
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

impl Rule {
    /// Returns true if the rule has no conditions, so that every string meets it.
    pub(crate) fn is_empty(&self) -> bool {
        let Rule { equals, contains, lacks, matches, says, among: _, list, set, csv, .. } = self;
        let Rule { number, within: _, json, document, absent, .. } = self;
        let texts = contains.list().is_empty() && lacks.list().is_empty();
        let values = equals.is_none() && matches.is_none() && says.is_none() && number.is_none();
        let parts = list.is_none() && set.is_none() && csv.is_none();
        texts && values && parts && json.is_empty() && document.is_none() && !absent
    }

    /// Returns the unmet conditions, one sentence each. If `text` is `None`, the file or key does
    /// not exist.
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
        let mut problems = self.verbatim(subject, &text);
        let within = self.within;
        let says = self
            .says
            .as_ref()
            .and_then(|says| says::wrong(subject, &text, says.list(), self.among.list(), within));
        let list = |items: &Option<Vec<Item>>, ordered| {
            list::wrong(subject, &text, items.as_ref()?, ordered, within)
        };
        let csv = self.csv.as_ref().and_then(|csv| csv::wrong(subject, &text, csv, within));
        let number = self.number.and_then(|number| wrong_number(subject, &text, number, within));
        let values = [says, list(&self.list, true), list(&self.set, false), csv, number];
        problems.extend(values.into_iter().flatten());
        problems.extend(json::wrong(subject, &text, &self.json, self.document.as_ref(), within));
        problems
    }

    /// Returns an error message for each violated condition on the text itself: `equals`,
    /// `contains`, `lacks` and `matches`.
    fn verbatim(&self, subject: &str, text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(expected) =
            self.equals.as_deref().map(normalised).filter(|expected| *expected != text)
        {
            problems.push(format!("{subject} is {}, expected {}", quoted(text), quoted(&expected)));
        }
        for part in
            self.contains.list().iter().filter(|part| !text.contains(normalised(part).as_str()))
        {
            problems.push(format!("{subject} does not contain {}: {}", quoted(part), quoted(text)));
        }
        for part in self.lacks.list().iter().filter(|part| text.contains(normalised(part).as_str()))
        {
            problems.push(format!(
                "{subject} contains {}, but should not: {}",
                quoted(part),
                quoted(text)
            ));
        }
        if let Some(Pattern(pattern)) =
            self.matches.as_ref().filter(|Pattern(pattern)| !pattern.is_match(text))
        {
            problems.push(format!("{subject} does not match `{pattern}`: {}", quoted(text)));
        }
        problems
    }
}

/// Quotes a string for a message and truncates it to 200 characters.
fn quoted(text: &str) -> String {
    quote(text, 200)
}

/// Returns an error message, or `None` if the text can be read as containing exactly the expected
/// number and no other.
fn wrong_number(subject: &str, text: &str, expected: f64, within: f64) -> Option<String> {
    let mut readings = readings(text);
    readings.iter_mut().for_each(Vec::dedup);
    let is_right =
        |reading: &Vec<f64>| matches!(reading.as_slice(), [one] if is_near(*one, expected, within));
    if readings.iter().any(is_right) {
        return None;
    }
    Some(match readings.first().map(Vec::as_slice).unwrap_or_default() {
        [] => format!("{subject} has no number, expected {expected}: {}", quoted(text)),
        [number] => format!("{subject} has the number {number}, expected {expected}"),
        many => format!(
            "{subject} has {} numbers, expected only {expected}: {}",
            many.len(),
            quoted(text)
        ),
    })
}

#[cfg(test)]
mod tests;
