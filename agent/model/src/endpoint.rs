//! Resolution of settings to an endpoint: URL, model and key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use url::Url;

use super::ApiKey;
use super::error::EndpointError;
use super::protocol::{LengthField, Protocol, ThinkingField};

/// The environment variable that contains the key for any endpoint.
const ANY_KEY: &str = "WATTLE_API_KEY";

/// A well-known endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Preset {
    /// The name that `--provider` accepts.
    pub name: String,
    /// The base URL. `/chat/completions`, or the path of another protocol, is appended to it.
    pub base_url: Url,
    /// The environment variable for this provider's key.
    #[serde(default)]
    pub key_variable: Option<String>,
    /// If true, the endpoint requires a key.
    #[serde(default)]
    pub needs_key: bool,
    /// The default model of the endpoint.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(flatten)]
    quirks: Quirks,
}

/// The peculiarities of a provider's endpoint, which requests must take into account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Quirks {
    pub(super) protocol: Protocol,
    /// If true, the provider's models are known to support functions.
    pub(super) functions: bool,
    pub(super) length_field: LengthField,
    /// The field for the reasoning effort, if there is one.
    pub(super) thinking: Option<ThinkingField>,
    /// If true, the provider can constrain answers to a JSON Schema.
    pub(super) json_schema: bool,
    pub(super) stream_usage: bool,
    pub(super) reasoning_fields: Vec<String>,
    /// Name prefixes of the models that cache only marked parts of a request.
    pub(super) cache_marks: Vec<String>,
    pub(super) headers: BTreeMap<String, String>,
}

/// The quirks of an unknown endpoint.
impl Default for Quirks {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            functions: false,
            length_field: LengthField::default(),
            thinking: None,
            json_schema: false,
            stream_usage: true,
            reasoning_fields: vec!["reasoning_content".to_owned(), "reasoning".to_owned()],
            cache_marks: Vec::new(),
            headers: BTreeMap::new(),
        }
    }
}

impl Quirks {
    /// Returns true if requests to this model must mark the parts to cache.
    pub(super) fn marks_cache_of(&self, model: &str) -> bool {
        self.cache_marks.iter().any(|prefix| model.starts_with(prefix.as_str()))
    }
}

/// Returns the well-known endpoints, in the order in which they are tried.
pub fn presets() -> &'static [Preset] {
    #[derive(Deserialize)]
    struct File {
        preset: Vec<Preset>,
    }
    // The file is compiled in, and a test checks that it can be parsed.
    static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
        toml::from_str(include_str!("providers.toml"))
            .map(|file: File| file.preset)
            .unwrap_or_default()
    });
    &PRESETS
}

/// The model settings, from flags, environment variables and files.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointSettings<'a> {
    /// The name of a preset (`--provider`).
    pub provider: Option<&'a str>,
    /// The endpoint's base URL (`--base-url`), which replaces the preset's URL.
    pub base_url: Option<&'a str>,
    /// The model's name (`--model`).
    pub model: Option<&'a str>,
    /// The name of the model for embeddings (`--embed-model`). By default, the same as `model`.
    pub embed_model: Option<&'a str>,
    /// The environment variable that contains the key (`--api-key-env`).
    pub api_key_env: Option<&'a str>,
}

/// A resolved endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The base URL. `/embeddings` and `/chat/completions`, or the path of another protocol, are
    /// appended to it.
    pub base_url: Url,
    /// The model's name.
    pub model: String,
    /// The name of the model for embeddings.
    pub embed_model: String,
    /// The key, if there is one.
    pub key: Option<ApiKey>,
    /// The environment variable from which the key is read.
    pub key_variable: String,
    pub(super) quirks: Quirks,
}

impl Endpoint {
    /// Returns true if requests to the endpoint can specify a reasoning effort.
    #[must_use]
    pub fn takes_thinking_effort(&self) -> bool {
        self.quirks.thinking.is_some()
    }

    /// Returns the URL of a path below the base URL, which may end with the path of the protocol.
    pub(super) fn below(&self, path: &str) -> Url {
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/');
        let own = base.strip_suffix(self.quirks.protocol.path());
        let base = own.and_then(|base| base.strip_suffix('/')).unwrap_or(base);
        url.set_path(&format!("{base}/{path}"));
        url
    }
}

impl<'a> EndpointSettings<'a> {
    /// Splits a model such as `openai:gpt-5` into a preset and the model's own name. A name whose
    /// beginning is not a preset stays whole: `llama3:8b`.
    fn with_named_preset(self) -> EndpointSettings<'a> {
        let parts = self.model.and_then(|model| model.trim().split_once(':'));
        match parts.filter(|_| self.provider.is_none() && self.base_url.is_none()) {
            Some((preset, model)) if named(preset).is_ok() && !model.is_empty() => {
                EndpointSettings { provider: Some(preset), model: Some(model), ..self }
            }
            _ => self,
        }
    }
}

/// Resolves the settings to an endpoint.
///
/// The preset is the one that `provider` names. If neither `provider` nor `base_url` is set, and
/// `model` begins with the name of a preset and a colon, it is that preset, and the rest is the
/// model: `openai:gpt-5`. If only `base_url` is set, it is the preset whose URL has the same origin. If neither is set, it is the first preset whose key
/// variable is set. If `api_key_env` is set, the key is read only from the variable that it names.
/// Otherwise, the key is read from `WATTLE_API_KEY` or, if that is not set, from the preset's
/// variable. If the preset was chosen because its key variable is set, `WATTLE_API_KEY` is ignored.
/// A key is therefore sent only to the host that it belongs to, unless the user explicitly chooses
/// otherwise.
///
/// # Errors
/// If no setting determines the endpoint, the preset is unknown, the URL is invalid, the key is
/// missing, or no model is named.
/// ```
/// use wattle_model::{EndpointSettings, resolve};
/// let settings =
///     EndpointSettings { provider: Some("ollama"), model: Some("qwen3"), ..Default::default() };
/// let endpoint = resolve(&settings, |_| None).unwrap();
/// assert_eq!(endpoint.base_url.as_str(), "http://127.0.0.1:11434/v1");
/// ```
pub fn resolve(
    settings: &EndpointSettings<'_>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Endpoint, EndpointError> {
    let settings = &settings.with_named_preset();
    let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let base_url = settings.base_url.map(parse_base).transpose()?;
    let preset = match (settings.provider, &base_url) {
        (Some(name), _) => Some(named(name)?),
        (None, Some(url)) => {
            presets().iter().find(|preset| preset.base_url.origin() == url.origin())
        }
        (None, None) => presets()
            .iter()
            .find(|preset| preset.key_variable.as_deref().is_some_and(|v| env(v).is_some())),
    };
    let found_by_key = settings.provider.is_none() && base_url.is_none();
    let base_url = match (base_url, preset) {
        (Some(url), _) => url,
        (None, Some(preset)) => preset.base_url.clone(),
        (None, None) if env(ANY_KEY).is_some() => {
            return Err(EndpointError::key_without_endpoint(ANY_KEY));
        }
        (None, None) => return Err(EndpointError::nothing_set()),
    };
    let (key, key_variable) = find_key(settings.api_key_env, preset, found_by_key, &env)?;
    let model = settings.model.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let model = model.or_else(|| preset?.model.clone()).ok_or_else(EndpointError::no_model)?;
    let embed_model = settings
        .embed_model
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .unwrap_or(&model)
        .to_owned();
    let quirks = preset.map(|preset| preset.quirks.clone()).unwrap_or_default();
    Ok(Endpoint { base_url, model, embed_model, key, key_variable, quirks })
}

fn named(name: &str) -> Result<&'static Preset, EndpointError> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['.', '-', '_', ' '], "");
    presets().iter().find(|preset| plain(&preset.name) == plain(name)).ok_or_else(|| {
        EndpointError::unknown_preset(name, presets().iter().map(|preset| preset.name.as_str()))
    })
}

fn parse_base(text: &str) -> Result<Url, EndpointError> {
    let url =
        Url::parse(text.trim()).map_err(|why| EndpointError::bad_url(text, &why.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(EndpointError::bad_url(text, "it does not begin with `http://` or `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EndpointError::key_in_url());
    }
    Ok(url)
}

fn find_key(
    asked: Option<&str>,
    preset: Option<&Preset>,
    found_by_key: bool,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<(Option<ApiKey>, String), EndpointError> {
    let own = preset.and_then(|preset| preset.key_variable.as_deref());
    let variables = match asked {
        Some(variable) => vec![variable],
        None => Some(ANY_KEY).filter(|_| !found_by_key).into_iter().chain(own).collect(),
    };
    for variable in &variables {
        if let Some(text) = env(variable) {
            let key = ApiKey::new(&text).ok_or_else(|| EndpointError::bad_key(variable))?;
            return Ok((Some(key), (*variable).to_owned()));
        }
    }
    match preset {
        _ if asked.is_some() => Err(EndpointError::no_key(None, &variables)),
        Some(preset) if preset.needs_key => {
            Err(EndpointError::no_key(Some(&preset.name), &variables))
        }
        _ => Ok((None, own.unwrap_or(ANY_KEY).to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointErrorKind as Kind;

    fn settings<'a>(
        provider: &'a str,
        base_url: &'a str,
        model: &'a str,
        key: &'a str,
    ) -> EndpointSettings<'a> {
        let some = |text: &'a str| (!text.is_empty()).then_some(text);
        EndpointSettings {
            provider: some(provider),
            base_url: some(base_url),
            model: some(model),
            api_key_env: some(key),
            embed_model: None,
        }
    }

    fn env<'a>(set: &'a [&'a str]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.contains(&name).then(|| format!("key-of-{name}"))
    }

    #[test]
    fn every_key_of_the_presets_is_known() {
        let file: toml::Table = include_str!("providers.toml").parse().unwrap();
        let keys = [
            "name",
            "base_url",
            "key_variable",
            "needs_key",
            "model",
            "protocol",
            "functions",
            "length_field",
            "stream_usage",
            "reasoning_fields",
            "headers",
            "cache_marks",
            "thinking",
            "json_schema",
        ];
        for preset in file["preset"].as_array().unwrap() {
            for key in preset.as_table().unwrap().keys() {
                assert!(keys.contains(&key.as_str()), "{key}");
            }
        }
    }

    #[test]
    fn presets_are_complete_and_documented() {
        let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        let known = [
            "openrouter",
            "cerebras",
            "openai",
            "anthropic",
            "groq",
            "mistral",
            "deepseek",
            "together",
            "gemini",
            "ollama",
            "llama.cpp",
            "vllm",
            "lmstudio",
        ];
        assert_eq!(names, known);
        let manual = include_str!("../../../docs/models.md");
        for preset in presets() {
            assert!(manual.contains(&format!("`{}`", preset.name)), "{}", preset.name);
            // A key is all that a user of a hosted model has to set.
            assert!(preset.model.is_some() || !preset.needs_key, "{}", preset.name);
            for model in preset.model.iter().filter(|_| preset.needs_key) {
                assert!(manual.contains(&format!("`{model}`")), "{model}");
            }
        }
    }

    #[test]
    fn settings_resolve_to_an_endpoint() {
        // provider, base URL, model, key variable; variables that are set; expected: URL, model,
        // variable, has key
        for (given, set, url, model, variable, has_key) in [
            (
                ["openai", "", "m", ""],
                &["OPENAI_API_KEY"][..],
                "https://api.openai.com/v1",
                "m",
                "OPENAI_API_KEY",
                true,
            ),
            (
                ["openai", "", "m", ""],
                &["OPENAI_API_KEY", "WATTLE_API_KEY"],
                "https://api.openai.com/v1",
                "m",
                "WATTLE_API_KEY",
                true,
            ),
            (
                ["openai", "", "m", "MINE"],
                &["OPENAI_API_KEY", "MINE"],
                "https://api.openai.com/v1",
                "m",
                "MINE",
                true,
            ),
            (
                ["", "", "m", ""],
                &["CEREBRAS_API_KEY", "OPENAI_API_KEY"],
                "https://api.cerebras.ai/v1",
                "m",
                "CEREBRAS_API_KEY",
                true,
            ),
            (
                ["", "", "m", ""],
                &["WATTLE_API_KEY", "OPENAI_API_KEY"],
                "https://api.openai.com/v1",
                "m",
                "OPENAI_API_KEY",
                true,
            ),
            (
                ["", "", "", ""],
                &["OPENROUTER_API_KEY"],
                "https://openrouter.ai/api/v1",
                "openrouter/auto",
                "OPENROUTER_API_KEY",
                true,
            ),
            (
                ["", "https://api.openai.com/v1/", "m", ""],
                &["OPENAI_API_KEY"],
                "https://api.openai.com/v1/",
                "m",
                "OPENAI_API_KEY",
                true,
            ),
            (
                ["", "http://10.0.0.9:9/v1", "m", ""],
                &["OPENAI_API_KEY"],
                "http://10.0.0.9:9/v1",
                "m",
                "WATTLE_API_KEY",
                false,
            ),
            (
                ["", "http://10.0.0.9:9/v1", "m", ""],
                &["WATTLE_API_KEY"],
                "http://10.0.0.9:9/v1",
                "m",
                "WATTLE_API_KEY",
                true,
            ),
            (
                ["LlamaCpp", "", "", ""],
                &[],
                "http://127.0.0.1:8080/v1",
                "default",
                "WATTLE_API_KEY",
                false,
            ),
            (
                ["", "", "m", ""],
                &["ANTHROPIC_API_KEY"],
                "https://api.anthropic.com/v1",
                "m",
                "ANTHROPIC_API_KEY",
                true,
            ),
            (
                ["lm-studio", "", "m", ""],
                &[],
                "http://127.0.0.1:1234/v1",
                "m",
                "WATTLE_API_KEY",
                false,
            ),
            (
                ["vllm", "http://box:1/v1", "m", ""],
                &["VLLM_API_KEY"],
                "http://box:1/v1",
                "m",
                "VLLM_API_KEY",
                true,
            ),
        ] {
            let [provider, base_url, name, key] = given;
            let endpoint = resolve(&settings(provider, base_url, name, key), env(set)).unwrap();
            let got = (
                endpoint.base_url.as_str(),
                endpoint.model.as_str(),
                endpoint.key_variable.as_str(),
                endpoint.key.is_some(),
            );
            assert_eq!(got, (url, model, variable, has_key), "{given:?} {set:?}");
        }
    }

    #[test]
    fn a_model_names_its_preset_unless_another_setting_does() {
        let cases = [
            ("", "", "openai:gpt-5", "https://api.openai.com/v1", "gpt-5"),
            ("", "", "ollama:llama3:8b", "http://127.0.0.1:11434/v1", "llama3:8b"),
            ("ollama", "", "llama3:8b", "http://127.0.0.1:11434/v1", "llama3:8b"),
            ("ollama", "", "openai:gpt-5", "http://127.0.0.1:11434/v1", "openai:gpt-5"),
            ("", "http://a.example/v1", "openai:gpt-5", "http://a.example/v1", "openai:gpt-5"),
            ("", "", "openai:", "https://api.openai.com/v1", "openai:"),
        ];
        for (provider, url, model, expected_url, expected) in cases {
            let endpoint =
                resolve(&settings(provider, url, model, ""), env(&["OPENAI_API_KEY"])).unwrap();
            assert_eq!((endpoint.base_url.as_str(), &*endpoint.model), (expected_url, expected));
        }
        let missing = resolve(&settings("", "", "openai:gpt-5", ""), env(&[])).unwrap_err();
        assert!(missing.to_string().contains("OPENAI_API_KEY"), "{missing}");
    }

    #[test]
    fn missing_settings_are_named() {
        for (given, set, kind, words) in [
            (["", "", "m", ""], &[][..], Kind::NothingSet, &["--provider", "--base-url"][..]),
            (
                ["", "", "m", ""],
                &["WATTLE_API_KEY"],
                Kind::NothingSet,
                &["WATTLE_API_KEY", "--provider"],
            ),
            (
                ["openai", "", "m", ""],
                &[],
                Kind::NoKey,
                &["openai", "`WATTLE_API_KEY`", "`OPENAI_API_KEY`"],
            ),
            (["ollama", "", "m", "MINE"], &["WATTLE_API_KEY"], Kind::NoKey, &["`MINE`"]),
            (["opnai", "", "m", ""], &[], Kind::UnknownPreset, &["opnai", "openai", "lmstudio"]),
            (["ollama", "", "", ""], &[], Kind::NoModel, &["--model"]),
            (["ollama", "", "  ", ""], &[], Kind::NoModel, &["--model"]),
            (["", "localhost:8080", "m", ""], &[], Kind::BadUrl, &["http://"]),
            (["", "not a url", "m", ""], &[], Kind::BadUrl, &["not a url"]),
            (["", "ftp://host/v1", "m", ""], &[], Kind::BadUrl, &["http://"]),
            (["", "http://me:pass@host/v1", "m", ""], &[], Kind::BadUrl, &["--api-key-env"]),
        ] {
            let [provider, base_url, name, key] = given;
            let why = resolve(&settings(provider, base_url, name, key), env(set)).unwrap_err();
            assert_eq!(why.kind(), kind, "{why}");
            for word in words {
                assert!(why.to_string().contains(word), "{why}");
            }
            assert!(
                !why.to_string().contains("key-of-") && !why.to_string().contains("pass@"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_not_shown() {
        let why = resolve(&settings("ollama", "", "m", ""), |_| Some("sk-top\nsecret".to_owned()))
            .unwrap_err();
        assert_eq!(why.kind(), Kind::NoKey);
        assert!(
            why.to_string().contains("WATTLE_API_KEY") && !why.to_string().contains("top"),
            "{why}"
        );
    }
}
