//! Opens models by name or by class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use wattle_agent::host::capability::egress::Egress;
use wattle_agent::model::{
    BALANCED_CLASS, CLASS_PREFIX, Endpoint, EndpointSettings, Model, Models, OneModel, RemoteModel,
    ThinkingEffort, Timeouts, resolve,
};

use super::Setup;
use super::remote::{endpoint_fault, endpoint_settings, mask_key};
use crate::api_keys::variable;
use crate::config::{Config, ModelClass};
use crate::fault::Fault;
use crate::output;

/// Maximum number of models that a process opens.
const MAX_MODELS: usize = 256;

/// The model of the configured endpoint, and the models of the classes.
struct ConfiguredModels {
    config: Config,
    egress: Egress,
    timeouts: Timeouts,
    /// The configured model.
    configured: Arc<dyn Model>,
    opened: Mutex<BTreeMap<String, Arc<dyn Model>>>,
}

impl Models for ConfiguredModels {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let is_configured = match name.strip_prefix(CLASS_PREFIX) {
            Some(class) => {
                class == BALANCED_CLASS && !self.config.models.value.0.contains_key(class)
            }
            None => name == self.configured.name(),
        };
        if is_configured || self.config.model.value.as_deref() == Some(name) {
            return Ok(Arc::clone(&self.configured));
        }
        let mut opened = self.opened.lock();
        if let Some(model) = opened.get(name) {
            return Ok(Arc::clone(model));
        }
        if opened.len() >= MAX_MODELS {
            return Err(format!("a process opens at most {MAX_MODELS} models"));
        }
        let named = endpoint(&self.config, Some(name)).map_err(|fault| fault.to_string())?;
        let model =
            client(named, &self.egress, self.timeouts).map_err(|fault| fault.to_string())?;
        opened.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }

    fn classes(&self) -> Vec<String> {
        class_names(&self.config)
    }
}

/// Returns the names of the classes.
fn class_names(config: &Config) -> Vec<String> {
    let mapped = config.models.value.0.keys().map(String::as_str);
    let names: BTreeSet<&str> = mapped.chain([BALANCED_CLASS]).collect();
    names.into_iter().map(str::to_owned).collect()
}

impl Setup {
    /// Returns true if no setting names a model, so that the provider's default model is used.
    pub(crate) fn uses_default_model(&self) -> bool {
        let Config { model, cassette, .. } = &self.config;
        cassette.value.is_none() && model.value.as_deref().is_none_or(|name| name.trim().is_empty())
    }

    /// Notes on stderr that `model` is the provider's default model, if no setting names a model.
    pub(crate) fn note_default_model(&self, model: &dyn Model) {
        if self.uses_default_model() {
            output::aside(&format!(
                "using {}, the provider's default model; `wattle config set model NAME` chooses \
                 another",
                output::visible(model.name())
            ));
        }
    }

    /// Returns the models that agents can name. `configured` is the model that [`Setup::model`]
    /// returned. If it is a recording, or if its answers are recorded, every name refers to it.
    pub(crate) fn models(&self, configured: Arc<dyn Model>) -> Arc<dyn Models> {
        if self.config.cassette.value.is_some() || self.config.record.value.is_some() {
            return Arc::new(OneModel::new(configured));
        }
        Arc::new(ConfiguredModels {
            config: self.config.clone(),
            egress: self.host.egress().clone(),
            timeouts: self.timeouts(),
            configured,
            opened: Mutex::default(),
        })
    }
}

/// The endpoint of a named model, with the reasoning effort of its class.
pub(crate) struct NamedEndpoint {
    /// The endpoint.
    pub(crate) endpoint: Endpoint,
    /// The default reasoning effort of requests.
    pub(crate) thinking_effort: Option<ThinkingEffort>,
}

/// Resolves the name of a model or a class to its endpoint. `None` means the configured model,
/// whose name may also be that of a class.
///
/// # Errors
/// If no setting names an endpoint, if a setting is invalid, or if the class is unknown.
pub(crate) fn endpoint(config: &Config, name: Option<&str>) -> Result<NamedEndpoint, Fault> {
    let configured = endpoint_settings(config);
    let name = name.or(configured.model);
    let class = match name.and_then(|name| name.strip_prefix(CLASS_PREFIX)) {
        Some(class) => find_class(config, class)?,
        None => None,
    };
    let name = name.filter(|name| !name.starts_with(CLASS_PREFIX));
    let settings = match class {
        Some(class) if class.provider.is_some() || class.base_url.is_some() => EndpointSettings {
            // The settings of the configured endpoint do not apply, because its key is meant for
            // another host.
            provider: class.provider.as_deref(),
            base_url: class.base_url.as_deref(),
            model: Some(&class.model),
            api_key_env: class.api_key_env.as_deref(),
            embed_model: None,
        },
        Some(class) => EndpointSettings {
            model: Some(&class.model),
            api_key_env: class.api_key_env.as_deref().or(configured.api_key_env),
            ..configured
        },
        None => EndpointSettings { model: name, ..configured },
    };
    Ok(NamedEndpoint {
        endpoint: resolve(&settings, variable).map_err(|error| endpoint_fault(&error))?,
        thinking_effort: class.and_then(|class| class.thinking_effort),
    })
}

/// Returns the class with this name. Returns `None` for the class `balanced` if it denotes the
/// configured model.
fn find_class<'a>(config: &'a Config, name: &str) -> Result<Option<&'a ModelClass>, Fault> {
    let class = config.models.value.0.get(name);
    if class.is_some() || name == BALANCED_CLASS {
        return Ok(class);
    }
    let known: Vec<String> = class_names(config).iter().map(|name| format!("`{name}`")).collect();
    let message = format!("unknown class of models `{name}`: the classes are {}", known.join(", "));
    Err(Fault::configuration(message)
        .hint(format!("set `models.{name}`, such as `models.{name} = \"MODEL\"`")))
}

/// Creates the client of an endpoint and masks the endpoint's key in everything that the process
/// records.
///
/// # Errors
/// If the endpoint's URL is invalid or not allowed.
pub(crate) fn client(
    named: NamedEndpoint,
    egress: &Egress,
    timeouts: Timeouts,
) -> Result<Arc<dyn Model>, Fault> {
    let NamedEndpoint { endpoint, thinking_effort } = named;
    endpoint.key.iter().for_each(|key| mask_key(key, &endpoint.key_variable));
    let client = RemoteModel::new(endpoint, egress, timeouts).map_err(Fault::configuration)?;
    Ok(Arc::new(client.with_thinking_effort(thinking_effort)))
}
