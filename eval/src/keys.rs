//! The keys of task files and of `eval.toml`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::Duration;

use serde::Deserialize;
use wattle_agent::host::catalog::{AiAnswer, Fixtures, HttpAnswer};

use crate::expect::Expectation;
use crate::samples::Samples;
use crate::task::Budget;

/// The keys of a task file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskKeys {
    pub(crate) prompt: String,
    pub(crate) agent: Option<String>,
    now: Option<toml::value::Datetime>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    kv: BTreeMap<String, String>,
    #[serde(default)]
    memory: Vec<String>,
    #[serde(default)]
    http: Vec<HttpKeys>,
    #[serde(default)]
    ai: Vec<AiAnswer>,
    #[serde(default)]
    pub(crate) expect: Expectation,
    #[serde(default)]
    pub(crate) budget: BudgetKeys,
    #[serde(default)]
    pub(crate) samples: Samples,
}

/// The keys of a scene in an agent's example. All keys are optional.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SceneKeys {
    now: Option<toml::value::Datetime>,
    random: Vec<u32>,
    files: BTreeMap<String, String>,
    kv: BTreeMap<String, String>,
    memory: Vec<String>,
    http: Vec<HttpKeys>,
    ai: Vec<AiAnswer>,
}

impl From<SceneKeys> for Fixtures {
    fn from(keys: SceneKeys) -> Fixtures {
        let SceneKeys { now, random, files, kv, memory, http, ai } = keys;
        let (now, http) = (now.map(|now| now.to_string()), http.into_iter().map(|one| one.0));
        let http = http.collect();
        Fixtures { now, random, files, kv, memory, http, ai, ..Fixtures::default() }
    }
}

/// The settings in `eval.toml`, which apply to all tasks.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SuiteKeys {
    pub(crate) about: String,
    pub(crate) budget: BudgetKeys,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<NonZero<u32>>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetKeys {
    steps: Option<u32>,
    tokens: Option<u64>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHttp {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

fn get() -> String {
    "GET".to_owned()
}

fn ok() -> u16 {
    200
}

/// A fixture's response to HTTP requests with a given method and URL.
#[derive(Deserialize)]
#[serde(try_from = "RawHttp")]
struct HttpKeys(HttpAnswer);

impl TryFrom<RawHttp> for HttpKeys {
    type Error = String;

    fn try_from(raw: RawHttp) -> Result<Self, String> {
        let RawHttp { url, method, status, headers, body } = raw;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("{url:?} is not an absolute http or https URL"));
        }
        if method.is_empty() || !method.bytes().all(|b| b.is_ascii_alphabetic()) {
            return Err(format!("{method:?} is not an HTTP method"));
        }
        if !(100..=599).contains(&status) {
            return Err(format!("{status} is not an HTTP status between 100 and 599"));
        }
        Ok(HttpKeys(HttpAnswer { url, method: method.to_ascii_uppercase(), status, headers, body }))
    }
}

impl TaskKeys {
    pub(crate) fn fixtures(&mut self) -> Fixtures {
        let scene = SceneKeys {
            now: self.now.take(),
            files: std::mem::take(&mut self.files),
            kv: std::mem::take(&mut self.kv),
            memory: std::mem::take(&mut self.memory),
            http: std::mem::take(&mut self.http),
            ai: std::mem::take(&mut self.ai),
            ..SceneKeys::default()
        };
        scene.into()
    }
}

impl BudgetKeys {
    /// Returns a budget with the values of these keys. The values for missing keys come from
    /// `defaults`.
    pub(crate) fn with_defaults(self, defaults: Budget) -> Budget {
        Budget {
            steps: self.steps.unwrap_or(defaults.steps),
            tokens: self.tokens.or(defaults.tokens),
            time: self.timeout_ms.map_or(defaults.time, Duration::from_millis),
        }
    }
}
