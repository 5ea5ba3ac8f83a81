//! The setting `models`: the model of each class, such as `fast`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_agent::model::ThinkingEffort;

use super::Value;
use super::value::table;

/// Maximum number of classes.
const MAX_CLASSES: usize = 64;

/// The classes of models, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelClasses(pub(crate) BTreeMap<String, ModelClass>);

/// The model of a class. A class without `provider` and `base_url` uses the configured endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelClass {
    /// The model's name.
    pub(crate) model: String,
    /// The name of the endpoint's preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// The URL of the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that contains the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_env: Option<String>,
    /// The default reasoning effort of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thinking_effort: Option<ThinkingEffort>,
}

const FORM: &str = "expected `fast = \"MODEL\"` or `fast = { model = \"MODEL\", provider = …, \
                    base_url = …, api_key_env = …, thinking_effort = … }`";

/// In an environment variable, the value is written as TOML: `fast = "small-model"`.
impl Value for ModelClasses {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_toml(&table(text)?, Path::new(""))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        let table = value.as_table().ok_or_else(|| FORM.to_owned())?;
        if table.len() > MAX_CLASSES {
            return Err(format!("expected at most {MAX_CLASSES} classes, found {}", table.len()));
        }
        let classes: Result<_, String> =
            table.iter().map(|(name, entry)| class(name, entry)).collect();
        classes.map(ModelClasses)
    }

    fn to_json(&self) -> Json {
        if self.0.is_empty() { Json::Null } else { json!(self.0) }
    }
}

fn class(name: &str, entry: &toml::Value) -> Result<(String, ModelClass), String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "the name {name:?} of a class has other characters than lower-case letters, digits, \
             `_` and `-`"
        ));
    }
    let wrong = |why: &str| format!("the class `{name}`: {why}; {FORM}");
    let class = match entry {
        toml::Value::String(model) => ModelClass { model: model.clone(), ..ModelClass::default() },
        entry => {
            entry.clone().try_into().map_err(|error: toml::de::Error| wrong(error.message()))?
        }
    };
    if class.model.trim().is_empty() {
        return Err(wrong("it names no model"));
    }
    Ok((name.to_owned(), class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_and_shown() {
        let text = "fast = \"small\"\ndeep = { model = \"big\", provider = \"openai\", \
                    thinking_effort = 80 }\n";
        let classes = ModelClasses::from_text(text).unwrap();
        assert_eq!(classes.0["fast"].model, "small");
        assert_eq!(classes.0["deep"].thinking_effort, ThinkingEffort::new(80));
        assert_eq!(
            classes.to_json(),
            json!({
                "fast": {"model": "small"},
                "deep": {"model": "big", "provider": "openai", "thinking_effort": 80},
            })
        );
        assert_eq!(ModelClasses::default().to_json(), Json::Null);
        for (text, words) in [
            ("fast = 3", "`fast`"),
            ("fast = \"\"", "names no model"),
            ("fast = { provider = \"openai\" }", "missing field `model`"),
            ("fast = { model = \"m\", key = \"k\" }", "unknown field `key`"),
            ("fast = { model = \"m\", thinking_effort = 101 }", "0 to 100"),
            ("\"Fast one\" = \"m\"", "lower-case"),
        ] {
            let why = ModelClasses::from_text(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
