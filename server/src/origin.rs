//! The origin of a run: the options of its request, as recorded in the journal.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_agent::agents::AgentSpec;
use wattle_agent::host::RunRequest;
use wattle_agent::model::CLASS_PREFIX;
use wattle_agent::output::OutputSchema;

use crate::error::ApiError;
use crate::field::{MessageText, SessionId};
use crate::quota::TokenKey;

/// The reason why a run of a revoked token is cancelled or does not go on.
pub(crate) const REVOKED: &str = "the token that started it was revoked";

/// The options of a run's request. The run's components are created from them when the run starts
/// and whenever it is resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOrigin {
    /// Always `serve`.
    pub(crate) by: String,
    /// If true, the run is trusted: the client requested it, and the operator allows it.
    #[serde(default)]
    pub(crate) exec: bool,
    /// Maximum number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_steps: Option<u32>,
    /// Maximum duration, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    /// Text that is added to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    /// The agent, or `None` for the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentSpec>,
    /// The name of the model, which is one of [`App::model_names`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The required output of the run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<OutputOrigin>,
    /// If true, the run is one request to the model, without programs and without the agent's
    /// prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) plain: bool,
    /// The hash of the token that started the run, in hexadecimal digits, or `None` if that is the
    /// server's own token. [`set_token`] sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

/// Returns the token that started a run with this origin, or `None` if that is the server's own token
/// or the run was not started through a server.
pub(crate) fn token(origin: &Json) -> Option<TokenKey> {
    if origin.get("by")? != "serve" {
        return None;
    }
    Some(*blake3::Hash::from_hex(origin.get("token")?.as_str()?).ok()?.as_bytes())
}

/// Sets the token that started a run in the run's origin. `None` is the server's own token.
pub(crate) fn set_token(origin: &mut Json, token: Option<TokenKey>) {
    let Json::Object(fields) = origin else { return };
    match token {
        Some(key) => {
            let digits = blake3::Hash::from_bytes(key).to_hex().to_string();
            fields.insert("token".to_owned(), digits.into());
        }
        None => {
            fields.remove("token");
        }
    }
}

impl RunOrigin {
    /// Creates the origin of an agent's run without any other options. `max_steps` is the limit in
    /// the request, and `default` applies if neither the request nor the agent sets a limit. The
    /// operator's limit is applied when the run starts.
    pub(crate) fn of_agent(agent: &AgentSpec, max_steps: Option<u32>, default: u32) -> RunOrigin {
        RunOrigin {
            max_steps: max_steps.or(agent.max_steps.is_none().then_some(default)),
            agent: (*agent != AgentSpec::default()).then(|| agent.clone()),
            ..RunOrigin::default()
        }
    }

    /// Returns the request for a run with this origin. Without a session, the run gets a new one.
    /// Also returns the session's id.
    pub(crate) fn request(
        &self,
        message: MessageText,
        session: Option<SessionId>,
    ) -> (RunRequest, String) {
        let session = session.unwrap_or_else(SessionId::generate).0;
        let request = RunRequest {
            session: Some(session.clone()),
            origin: self.json(),
            ..RunRequest::new(message.0)
        };
        (request, session)
    }

    /// Returns the origin for a child run. The client's options for the root run do not apply
    /// to child runs.
    pub(crate) fn of_child(self) -> RunOrigin {
        let RunOrigin { by, exec, agent, .. } = self;
        RunOrigin { by, exec, agent, ..RunOrigin::default() }
    }
}

/// The name and the JSON Schema of a run's required output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputOrigin {
    pub(crate) name: String,
    pub(crate) schema: Json,
}

impl OutputOrigin {
    /// Checks that the schema is usable and creates the required output. `field` is the name of the
    /// request's field that contains the schema.
    pub(crate) fn checked(field: &str, name: String, schema: Json) -> Result<Self, ApiError> {
        OutputSchema::new(name.as_str(), schema.clone())
            .map_err(|why| ApiError::invalid_field(format!("`{field}`: {why}")))?;
        Ok(Self { name, schema })
    }
}

impl Default for RunOrigin {
    fn default() -> Self {
        RunOrigin {
            by: "serve".to_owned(),
            exec: false,
            max_steps: None,
            timeout_ms: None,
            system: None,
            agent: None,
            model: None,
            output: None,
            plain: false,
            token: None,
        }
    }
}

impl RunOrigin {
    /// Parses an origin from the journal. Returns `None` if the run was not started through a
    /// server.
    pub(crate) fn of_server(origin: &Json) -> Option<RunOrigin> {
        let origin: RunOrigin = serde_json::from_value(origin.clone()).ok()?;
        (origin.by == "serve").then_some(origin)
    }

    /// Returns the name of the model that a server needs in order to drive the run: the model named
    /// in the request, or else the agent's model if it is one of the `classes` of this server.
    /// Returns `None` if the run requires no particular model.
    pub(crate) fn required_model(&self, classes: &[String]) -> Option<&str> {
        let of_agent = self.agent.as_ref().and_then(|agent| agent.model.as_deref());
        let is_class = |name: &&str| {
            let class = name.strip_prefix(CLASS_PREFIX);
            class.is_some_and(|class| classes.iter().any(|known| known == class))
        };
        self.model.as_deref().or_else(|| of_agent.filter(is_class))
    }

    /// Returns the origin as JSON for the journal.
    pub(crate) fn json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Returns a string that lists the requirements for driving a run: support for trusted runs, a base
/// folder for all sessions, and a model.
pub(crate) fn needs(exec: bool, base: bool, model: Option<&str>) -> String {
    let (exec, base) = (if exec { " exec" } else { "" }, if base { " root" } else { "" });
    let model = model.map(|name| format!(" model={name}")).unwrap_or_default();
    format!("serve{exec}{base}{model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_requires_the_model_of_the_request_or_the_class_of_its_agent() {
        let classes = ["fast".to_owned()];
        for (asked, of_agent, required) in [
            (None, None, None),
            (Some("m"), None, Some("m")),
            (Some("m"), Some("class:fast"), Some("m")),
            (None, Some("class:fast"), Some("class:fast")),
            (None, Some("class:deep"), None),
            (None, Some("fast"), None),
        ] {
            let named = |name: Option<&str>| name.map(str::to_owned);
            let agent = AgentSpec { model: named(of_agent), ..AgentSpec::default() };
            let origin = RunOrigin { model: named(asked), ..RunOrigin::of_agent(&agent, None, 10) };
            assert_eq!(origin.required_model(&classes), required, "{asked:?} {of_agent:?}");
        }
    }
}
