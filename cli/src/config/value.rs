//! The types of settings, which are parsed from strings and TOML and printed as JSON.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value as Json, json};
use wattle_agent::host::capability::egress::HostRule;
use wattle_agent::host::capability::git::{Branch, Remote};
use wattle_agent::host::capability::policy::Rule;
use wattle_agent::host::capability::secrets::SecretHost;
use wattle_agent::host::capability::web::EngineKind;
use wattle_agent::host::machine::OnMaxSteps;
use wattle_agent::host::{DialectSetting, Timeout};
use wattle_agent::model::FunctionChoice;

use super::store::BlobLocation;

/// The type of a setting's value. Error messages contain the expected format and the actual value.
pub(crate) trait Value: Clone + Send + Sync + Sized + 'static {
    /// If true, the value is a path, or a list of paths.
    const IS_PATH: bool = false;

    /// Parses the value of an environment variable or an option.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Parses a value from a file. Relative paths are relative to the file's folder.
    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        Self::from_text(&String::from_toml(value, folder)?)
    }

    /// Returns the value as JSON, or null if there is no value. For these types, the JSON is also
    /// valid TOML.
    fn to_json(&self) -> Json;

    /// Makes an option parse its value.
    fn parsed(option: Arg) -> Arg {
        option.value_parser(Self::from_text)
    }

    /// Returns the value of an option that the command line contains.
    fn given(matches: &ArgMatches, name: &str) -> Option<Self> {
        matches.get_one(name).cloned()
    }
}

impl Value for Timeout {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        value
            .as_str()
            .ok_or_else(|| format!("{} in quotes, found {value}", Timeout::EXPECTED))?
            .parse()
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }
}

/// The time for which data is kept. `None` means forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepTime(pub(crate) Option<Duration>);

/// The string form of an unlimited [`KeepTime`].
const FOREVER: &str = "forever";

impl Value for KeepTime {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim() == FOREVER {
            return Ok(KeepTime(None));
        }
        let span = text.parse::<Timeout>().map_err(|why| format!("{why}, or `{FOREVER}`"))?;
        Ok(KeepTime(Some(span.0)))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        let text = value.as_str();
        let wrong = || format!("{} or `{FOREVER}` in quotes, found {value}", Timeout::EXPECTED);
        KeepTime::from_text(text.ok_or_else(wrong)?)
    }

    fn to_json(&self) -> Json {
        self.0.map_or_else(|| json!(FOREVER), |kept| json!(Timeout(kept).to_string()))
    }
}

impl Value for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        let text =
            value.as_str().ok_or_else(|| format!("expected a text in quotes, found {value}"))?;
        if text.trim().is_empty() {
            Err("expected a text that is not empty".to_owned())
        } else {
            Ok(text.to_owned())
        }
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for NonZeroU32 {
    fn from_text(text: &str) -> Result<Self, String> {
        let number = text.trim().parse();
        number.map_err(|_| format!("expected a whole number from 1 on, found {text:?}"))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        let number = value.as_integer().and_then(|n| NonZeroU32::new(u32::try_from(n).ok()?));
        number.ok_or_else(|| format!("expected a whole number from 1 on, found {value}"))
    }

    fn to_json(&self) -> Json {
        json!(self.get())
    }
}

impl Value for u32 {
    fn from_text(text: &str) -> Result<Self, String> {
        let number = text.trim().parse();
        number.map_err(|_| format!("expected a whole number from 0 on, found {text:?}"))
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        Self::from_text(&value.to_string())
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

/// The end of a run that has used up its steps: `answer`, `stop` or `latest`.
impl Value for OnMaxSteps {
    fn from_text(text: &str) -> Result<Self, String> {
        serde_json::from_value(json!(text.trim()))
            .map_err(|_| format!("expected `answer`, `stop` or `latest`, found {text:?}"))
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

/// A switch, such as `on`, `yes`, `true` or `1`.
impl Value for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(format!("expected true or false, found {text:?}")),
        }
    }

    fn from_toml(value: &toml::Value, _: &Path) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("expected true or false, found {value}"))
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

/// The confinement of the process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sandbox {
    /// The strongest confinement that the system supports.
    On,
    /// No confinement.
    Off,
}

impl std::str::FromStr for Sandbox {
    type Err = String;

    fn from_str(text: &str) -> Result<Sandbox, String> {
        match text.trim() {
            "on" => Ok(Sandbox::On),
            "off" => Ok(Sandbox::Off),
            _ => Err(format!("expected `on` or `off`, found {text:?}")),
        }
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Sandbox::On { "on" } else { "off" })
    }
}

/// The search engine for the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchEngine {
    /// Programs cannot search the web.
    Off,
    /// A search engine of the given kind.
    Kind(EngineKind),
}

impl Default for SearchEngine {
    fn default() -> SearchEngine {
        SearchEngine::Kind(EngineKind::Page)
    }
}

impl std::str::FromStr for SearchEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<SearchEngine, String> {
        match text.trim() {
            "off" => Ok(SearchEngine::Off),
            name => name.parse().map(SearchEngine::Kind).map_err(|_| {
                format!("expected `page`, `searxng`, `brave` or `off`, found {text:?}")
            }),
        }
    }
}

impl fmt::Display for SearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchEngine::Off => f.write_str("off"),
            SearchEngine::Kind(kind) => kind.fmt(f),
        }
    }
}

impl Value for PathBuf {
    const IS_PATH: bool = true;

    fn from_text(text: &str) -> Result<Self, String> {
        Ok(PathBuf::from(text))
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        let text = String::from_toml(value, folder)?;
        Ok(match text.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest),
            None => folder.join(text),
        })
    }

    fn to_json(&self) -> Json {
        json!(self.to_string_lossy())
    }

    fn parsed(option: Arg) -> Arg {
        option.value_parser(clap::value_parser!(PathBuf))
    }
}

/// Implements [`Value`] for types that are parsed from and printed as strings.
macro_rules! of_text {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn to_json(&self) -> Json {
                json!(self.to_string())
            }
        }
    )*};
}
of_text!(
    BlobLocation,
    Branch,
    DialectSetting,
    FunctionChoice,
    HostRule,
    Remote,
    Rule,
    Sandbox,
    SearchEngine,
    SecretHost
);

/// Parses an environment variable that contains the entries of a table, as TOML.
pub(super) fn table(text: &str) -> Result<toml::Value, String> {
    let table: Result<toml::Table, _> = text.parse();
    table.map(toml::Value::Table).map_err(|error: toml::de::Error| error.message().to_owned())
}

/// A list. In an environment variable, commas separate its items.
impl<T: Value> Value for Vec<T> {
    const IS_PATH: bool = T::IS_PATH;

    fn from_text(text: &str) -> Result<Self, String> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::from_text).collect()
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        let items = value
            .as_array()
            .ok_or_else(|| format!("expected a list such as [\"…\"], found {value}"))?;
        items.iter().map(|item| T::from_toml(item, folder)).collect()
    }

    fn to_json(&self) -> Json {
        self.iter().map(Value::to_json).collect()
    }

    fn parsed(option: Arg) -> Arg {
        T::parsed(option).action(ArgAction::Append)
    }

    fn given(matches: &ArgMatches, name: &str) -> Option<Self> {
        Some(matches.get_many(name)?.cloned().collect())
    }
}

impl<T: Value> Value for Option<T> {
    const IS_PATH: bool = T::IS_PATH;

    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        T::from_toml(value, folder).map(Some)
    }

    fn to_json(&self) -> Json {
        self.as_ref().map_or(Json::Null, Value::to_json)
    }

    fn parsed(option: Arg) -> Arg {
        T::parsed(option)
    }

    fn given(matches: &ArgMatches, name: &str) -> Option<Self> {
        T::given(matches, name).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read() {
        for (text, on) in [("1", true), ("TRUE", true), ("off", false), ("0", false)] {
            assert_eq!(bool::from_text(text), Ok(on));
        }
        assert!(bool::from_text("maybe").is_err());
    }
}
