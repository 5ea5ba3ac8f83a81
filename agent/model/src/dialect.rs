//! The setting for a run's dialect, which is the form in which the model calls programs.

use std::fmt;
use std::str::FromStr;

use wattle_machine::Dialect;

use crate::Model;

/// The setting for the dialect in which a model calls programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialectSetting {
    /// Calls are part of the answer's text.
    Text,
    /// Calls are made through the provider's native function calling. A model that does not support
    /// it cannot be used.
    Native,
    /// Calls are made through native function calling if the model is known to support it, and
    /// otherwise in the answer's text. If the model turns out not to support it, the run switches
    /// to text.
    #[default]
    Auto,
}

impl DialectSetting {
    /// All settings with their names.
    pub const ALL: [(DialectSetting, &'static str); 3] = [
        (DialectSetting::Text, "text"),
        (DialectSetting::Native, "native"),
        (DialectSetting::Auto, "auto"),
    ];

    /// Returns the dialect that a run with this model starts with.
    #[must_use]
    pub fn choose(self, model: &dyn Model) -> Dialect {
        match self {
            DialectSetting::Text => Dialect::Text,
            DialectSetting::Native => Dialect::Native,
            DialectSetting::Auto if model.takes_functions() => Dialect::Native,
            DialectSetting::Auto => Dialect::Text,
        }
    }
}

impl fmt::Display for DialectSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = DialectSetting::ALL
            .iter()
            .find(|(setting, _)| setting == self)
            .map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for DialectSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        let found = DialectSetting::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted));
        found
            .map(|(setting, _)| *setting)
            .ok_or_else(|| format!("expected `text`, `native` or `auto`, found {text:?}"))
    }
}
