//! The end of what uses a token when the token is revoked, on any server of the store.

use std::time::Duration;

use crate::state::Shared;

/// Interval between two checks of the tokens in use.
const INTERVAL: Duration = Duration::from_secs(2);

/// Ends the streams, programs and runs of tokens that are no longer in the store. A server that
/// revokes a token looks at once.
pub(crate) async fn watch(shared: &Shared) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shared.quotas.revoked() => {}
        }
        let tokens = shared.quotas.tokens();
        if tokens.is_empty() {
            continue;
        }
        match shared.app.own().store.file().unknown_tokens(tokens).await {
            Ok(unknown) => unknown.iter().for_each(|token| shared.quotas.end(token)),
            Err(error) => tracing::warn!(%error, "failed to check the tokens in use"),
        }
    }
}
