//! The types of model settings: the dialect, dollar amounts, prices, and the content guard.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_agent::host::machine::Dollars;
use wattle_agent::host::moderation::{OnFailure, Patterns};
use wattle_agent::model::{Price, Prices, ThinkingEffort};

use super::Value;
use super::value::table;

impl Value for ThinkingEffort {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        value.to_string().parse()
    }

    fn to_json(&self) -> Json {
        json!(self.get())
    }
}

/// A sampling temperature, from 0 to 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Temperature(f64);

impl Temperature {
    /// Returns a recorded temperature, or `None` if it is not a valid one.
    pub(crate) fn of(recorded: f32) -> Option<Self> {
        Self::from_text(&recorded.to_string()).ok()
    }

    /// Returns the temperature.
    pub(crate) fn get(self) -> f32 {
        self.0 as f32
    }
}

impl Default for Temperature {
    fn default() -> Self {
        Temperature(0.3)
    }
}

impl Value for Temperature {
    fn from_text(text: &str) -> Result<Self, String> {
        let temperature = text.trim().parse().ok().filter(|value| (0.0..=2.0).contains(value));
        temperature
            .map(Temperature)
            .ok_or_else(|| format!("expected a number from 0 to 2, such as 0.3, found {text:?}"))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        Self::from_text(&value.to_string())
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

/// A dollar amount above zero, such as `0.50` or `$2`.
impl Value for Dollars {
    fn from_text(text: &str) -> Result<Self, String> {
        let bare = text.trim();
        let amount = bare.strip_prefix('$').unwrap_or(bare).parse().ok().and_then(Dollars::new);
        amount.filter(|amount| amount.nanos() > 0).ok_or_else(|| {
            format!("expected an amount of dollars above zero, such as 0.50, found {text:?}")
        })
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        match value {
            toml::Value::String(text) => Self::from_text(text),
            value => Self::from_text(&value.to_string()),
        }
    }

    fn to_json(&self) -> Json {
        json!(self.amount())
    }
}

/// In an environment variable, the value is written as TOML:
/// `my-model = { prompt = 1.0, completion = 2.0 }`.
impl Value for Prices {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_toml(&table(text)?, Path::new(""))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        let prices: Result<BTreeMap<String, Price>, _> = value.clone().try_into();
        Prices::new(prices.map_err(|error| {
            format!(
                "expected `\"MODEL\" = {{ prompt = 1.0, completion = 2.0, cached = 0.1 }}`: {}",
                error.message()
            )
        })?)
    }

    fn to_json(&self) -> Json {
        if self.set().is_empty() { Json::Null } else { json!(self.set()) }
    }
}

/// The content guard, which checks each message before its run starts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ContentGuard {
    /// If true, the guard is enabled.
    pub(crate) enabled: bool,
    /// The patterns of forbidden text.
    pub(crate) deny: Vec<Denied>,
    /// If true, the guard also asks the model to classify each message.
    pub(crate) classifier: bool,
    /// The categories that the model looks for. If the list is empty, the categories that have a
    /// message are used, or the default categories if there are no messages.
    pub(crate) categories: Vec<String>,
    /// The messages to the user, by category.
    pub(crate) messages: BTreeMap<String, String>,
    /// The behaviour if the request to the model fails.
    pub(crate) on_failure: Failing,
}

/// A pattern, and the category of its matches.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Denied {
    pub(crate) pattern: String,
    pub(crate) category: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Failing {
    #[default]
    Close,
    Open,
}

impl From<Failing> for OnFailure {
    fn from(failing: Failing) -> OnFailure {
        match failing {
            Failing::Close => OnFailure::Close,
            Failing::Open => OnFailure::Open,
        }
    }
}

/// The default categories.
const CATEGORIES: &[&str] = &["violence", "self-harm", "hate", "sexual", "crime"];

impl ContentGuard {
    /// Returns the guard for `guard = true` or `guard = false`.
    fn switched(enabled: bool) -> ContentGuard {
        ContentGuard { enabled, classifier: enabled, ..ContentGuard::default() }
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    /// If a pattern is not a valid regular expression.
    pub(crate) fn patterns(&self) -> Result<Patterns, String> {
        Patterns::new(
            self.deny.iter().map(|denied| (denied.pattern.as_str(), denied.category.as_str())),
        )
    }

    /// Returns the categories that the model looks for.
    pub(crate) fn looked_for(&self) -> Vec<String> {
        match (self.categories.is_empty(), self.messages.is_empty()) {
            (false, _) => self.categories.clone(),
            (true, false) => self.messages.keys().cloned().collect(),
            (true, true) => CATEGORIES.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Value for ContentGuard {
    fn from_text(text: &str) -> Result<Self, String> {
        if let Ok(enabled) = bool::from_text(text) {
            return Ok(ContentGuard::switched(enabled));
        }
        let table: toml::Table =
            text.parse().map_err(|_| format!("expected true, false or TOML, found {text:?}"))?;
        Self::from_toml(&toml::Value::Table(table), Path::new(""))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        if let Some(enabled) = value.as_bool() {
            return Ok(ContentGuard::switched(enabled));
        }
        let guard: ContentGuard = value
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| error.message().to_owned())?;
        guard.patterns()?;
        if guard.enabled && guard.deny.is_empty() && !guard.classifier {
            return Err("it is enabled and looks for nothing: give `deny = [{ pattern = …, \
                        category = … }]` or `classifier = true`"
                .to_owned());
        }
        Ok(guard)
    }

    fn to_json(&self) -> Json {
        if self.enabled { json!(self) } else { json!(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(text: &str) -> Result<ContentGuard, String> {
        let table: toml::Table = text.parse().unwrap();
        ContentGuard::from_toml(&table["guard"], Path::new(""))
    }

    #[test]
    fn a_guard_is_read() {
        let text = "[guard]\nenabled = true\ndeny = [{ pattern = \"bombs?\", category = \
                    \"violence\" }]\non_failure = \"open\"\n[guard.messages]\nviolence = \"No.\"\n";
        let read = guard(text).unwrap();
        assert_eq!(
            (read.deny.len(), read.on_failure, read.looked_for()),
            (1, Failing::Open, vec!["violence".to_owned()])
        );
        assert!(guard("guard = true").unwrap().classifier);
        assert!(!guard("guard = false").unwrap().enabled);
        for (text, words) in [
            ("[guard]\nenabled = true", "looks for nothing"),
            (
                "[guard]\ndeny = [{ pattern = \"(\", category = \"x\" }]",
                "`(` is not a valid regular expression",
            ),
            ("[guard]\nenable = true", "unknown field"),
            ("[guard]\non_failure = \"maybe\"", "maybe"),
        ] {
            let why = guard(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn amounts_are_read() {
        for (text, shown) in [("0.5", "$0.50"), ("$2", "$2.00"), (" 0.000001 ", "$0.000001")] {
            assert_eq!(Dollars::from_text(text).unwrap().to_string(), shown);
        }
        for text in ["", "0", "-1", "NaN", "two", "1e300"] {
            assert!(Dollars::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn temperatures_are_read() {
        assert_eq!(Temperature::default().get(), wattle_agent::Settings::default().temperature);
        for (text, value) in [("0", 0.0), (" 0.3 ", 0.3), ("2.0", 2.0)] {
            assert_eq!(Temperature::from_text(text), Ok(Temperature(value)));
        }
        for text in ["", "-0.1", "2.1", "NaN", "inf", "warm", "\"1\""] {
            assert!(Temperature::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prices_are_read() {
        let prices =
            Prices::from_text("\"my-model\" = { prompt = 1.0, completion = 2.0 }").unwrap();
        assert_eq!(prices.set()["my-model"].completion, 2.0);
        for text in ["m = 3", "m = { prompt = 1.0 }", "m = { prompt = -1.0, completion = 1.0 }"] {
            assert!(Prices::from_text(text).is_err(), "{text}");
        }
    }
}
