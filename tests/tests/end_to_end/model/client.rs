//! Fixtures: a client for a scripted endpoint, and a request.

use std::time::Duration;

use wattle_agent::model::{
    Delta, EndpointSettings, Model, ModelError, ModelReply, ModelRequest, RemoteModel, Timeouts,
    resolve,
};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::{AnswerPart, Message};
use wattle_tests::provider::Provider;

pub(crate) const KEY: &str = "sk-very-secret-0123456789";

pub(crate) fn quick() -> Timeouts {
    let ms = Duration::from_millis;
    Timeouts {
        request: ms(10_000),
        retry_for: ms(150),
        slack: ms(100),
        backoff: ms(1),
        max_delay: ms(20),
    }
}

pub(crate) fn client_with(
    provider: &Provider,
    timeouts: Timeouts,
    key: Option<&str>,
) -> RemoteModel {
    let base = provider.base_url();
    let settings =
        EndpointSettings { base_url: Some(&base), model: Some("test-model"), ..Default::default() };
    let endpoint =
        resolve(&settings, |name| key.filter(|_| name == "WATTLE_API_KEY").map(str::to_owned))
            .unwrap();
    RemoteModel::new(endpoint, &Egress::new(Policy::default()), timeouts).unwrap()
}

pub(crate) fn client(provider: &Provider) -> RemoteModel {
    client_with(provider, quick(), Some(KEY))
}

pub(crate) fn question() -> Vec<Message> {
    vec![Message::system("be brief"), Message::user("say hello")]
}

pub(crate) async fn complete(model: &dyn Model) -> Result<ModelReply, ModelError> {
    model.complete(ModelRequest::new(&question())).await
}

/// Streams a reply. Returns the reply and the streamed text. In the text, `⟲` marks a retry after
/// a part of the reply.
pub(crate) async fn stream(model: &dyn Model) -> (Result<ModelReply, ModelError>, String) {
    let mut shown = String::new();
    let mut take = |delta: Delta<'_>| match delta {
        Delta::Part(AnswerPart::Text(text)) => shown.push_str(text),
        Delta::Part(_) => {}
        Delta::Retry { .. } if shown.is_empty() || shown.ends_with('⟲') => {}
        Delta::Retry { .. } => shown.push('⟲'),
    };
    let reply = model.stream(ModelRequest::new(&question()), &mut take).await;
    (reply, shown)
}

pub(crate) fn delta(text: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string()
}
