//! Creation of the remote services from the settings: the model's endpoint, the search engine, and
//! the telemetry collector.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use wattle_agent::Host;
use wattle_agent::host::capability::egress::Egress;
use wattle_agent::host::capability::web::{Engine, EngineSettings};
use wattle_agent::host::otel::{Collector, CollectorSettings};
use wattle_agent::model::{ApiKey, EndpointError, EndpointErrorKind, EndpointSettings};

use crate::api_keys::variable;
use crate::config::{Config, SearchEngine};
use crate::fault::Fault;
use crate::output;

/// Returns the settings of the configured endpoint.
pub(super) fn endpoint_settings(config: &Config) -> EndpointSettings<'_> {
    EndpointSettings {
        provider: config.provider.value.as_deref(),
        base_url: config.base_url.value.as_deref(),
        model: config.model.value.as_deref(),
        api_key_env: config.api_key_env.value.as_deref(),
        embed_model: config.embed_model.value.as_deref(),
    }
}

/// The warning about a key that is too short to be masked.
pub(crate) const SHORT_KEY: &str =
    "it has fewer than 8 characters, so it is not masked in traces, logs and messages";

/// The environment variables whose keys have been reported as too short.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Masks an endpoint's key in everything that the process records. Warns once per variable if the
/// key is too short.
pub(crate) fn mask_key(key: &ApiKey, variable: &str) {
    output::mask().add_key(key);
    let mut reported = REPORTED.lock();
    if key.is_short() && reported.insert(variable.to_owned()) {
        output::warn(&format!("the key in `{variable}`: {SHORT_KEY}"));
    }
}

/// Returns the fault for an endpoint that cannot be resolved.
pub(super) fn endpoint_fault(error: &EndpointError) -> Fault {
    let key = variable("WATTLE_API_KEY").is_some_and(|key| !key.trim().is_empty());
    if error.kind() == EndpointErrorKind::NothingSet && !key {
        let hint = "`wattle init` sets one up, and `wattle demo` needs none; or set a key \
                    (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, …),\nor name an endpoint: `--base-url \
                    URL --model NAME`, or `--provider ollama --model NAME`";
        return Fault::configuration("no model is set up").hint(hint);
    }
    Fault::configuration(error)
}

/// The reason why programs cannot search the web if `search.engine` is `off`.
const SEARCH_OFF: &str = "web search is off; the operator sets `search.engine` to `page`, \
                          `searxng` or `brave` to switch it on";

/// Creates the configured search engine.
///
/// # Errors
/// If `search.engine` is `off`, or a setting is invalid. Only searches report this error, because
/// everything else works without an engine.
pub(crate) fn engine(config: &Config, egress: &Egress) -> Result<Engine, String> {
    let SearchEngine::Kind(kind) = config.search_engine.value else {
        return Err(SEARCH_OFF.to_owned());
    };
    let url = config.search_url.value.as_deref();
    let key_variable = &config.search_key_env.value;
    let engine = Engine::new(&EngineSettings { kind, url, key_variable }, egress, variable)?;
    engine.key().inspect(|key| mask_key(key, key_variable));
    Ok(engine)
}

/// Creates the telemetry collector from the standard environment variables of OpenTelemetry.
/// Returns `None` if they name no endpoint.
///
/// # Errors
/// If the variables are invalid.
pub(super) fn collector(host: &Host) -> Result<Option<Collector>, Fault> {
    let given = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
    let Some(endpoint) = given("OTEL_EXPORTER_OTLP_ENDPOINT") else { return Ok(None) };
    let settings = CollectorSettings {
        endpoint,
        headers: given("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default(),
        service: given("OTEL_SERVICE_NAME").unwrap_or_default(),
        content: given("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
            .is_some_and(|text| text.trim() == "true"),
    };
    let collector = Collector::new(&settings, host.egress()).map_err(Fault::configuration)?;
    collector.keys().iter().for_each(|key| output::mask().add_key(key));
    Ok(Some(collector))
}
