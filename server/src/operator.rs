//! The operator's settings, as shown to administrators of the server's own tenant.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

/// The operator's settings, and the folders to which administrators may add programs.
#[derive(Clone, Debug, Default)]
pub struct Operator {
    /// The settings, in the order of `docs/configuration.md`.
    pub settings: Vec<SettingLine>,
    /// The program folders, in the order in which the catalog reads them.
    pub programs: Vec<PathBuf>,
}

/// A setting with its origin.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SettingLine {
    /// The key, such as `ai.calls`.
    pub key: String,
    /// The value, without secrets. Null if the setting has no value.
    pub value: Json,
    /// The origin of the value, such as `WATTLE_MODEL`, a file or `default`.
    pub origin: String,
}
