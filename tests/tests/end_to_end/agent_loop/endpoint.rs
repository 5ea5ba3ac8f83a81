//! Helpers that create a remote model backed by a scripted endpoint.

use std::time::Duration;

use wattle_agent::model::{EndpointSettings, RemoteModel, Timeouts, resolve};
use wattle_capability::egress::{Egress, Policy};
use wattle_tests::provider::{Answer, Provider};

/// Returns settings with almost immediate retries and short timeouts.
pub(crate) fn quick() -> Timeouts {
    let ms = Duration::from_millis;
    Timeouts {
        request: ms(4_000),
        retry_for: ms(150),
        slack: ms(500),
        backoff: ms(1),
        max_delay: ms(20),
    }
}

/// Returns a model that uses the given preset for the scripted endpoint.
pub(crate) fn remote(
    provider: &Provider,
    preset: &str,
    model: &str,
    timeouts: Timeouts,
) -> RemoteModel {
    let base = provider.base_url();
    let settings = EndpointSettings {
        provider: Some(preset),
        base_url: Some(&base),
        model: Some(model),
        ..Default::default()
    };
    let endpoint =
        resolve(&settings, |name| (name == "WATTLE_API_KEY").then(|| "sk-secret".to_owned()))
            .unwrap();
    RemoteModel::new(endpoint, &Egress::new(Policy::default()), timeouts).unwrap()
}

/// Returns a complete message that calls one function.
pub(crate) fn calling(name: &str, arguments: &str) -> Answer {
    let call = serde_json::json!({
        "id": "c1", "type": "function", "function": {"name": name, "arguments": arguments},
    });
    let message = serde_json::json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let choice = serde_json::json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    Answer::body(serde_json::json!({"choices": [choice]}).to_string())
}
