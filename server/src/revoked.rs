//! The end of what uses a token when the token is revoked, on any server of the store.

use std::collections::HashMap;
use std::time::Duration;

use wattle_agent::Tenant;

use crate::origin::{REVOKED, token};
use crate::quota::TokenKey;
use crate::state::Shared;

/// Interval between two checks of the tokens in use.
const INTERVAL: Duration = Duration::from_secs(2);

/// Ends the requests, streams, programs and runs of tokens that are no longer in the store. A server
/// that revokes a token looks at once.
pub(crate) async fn watch(shared: &Shared) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shared.quotas.revoked() => {}
        }
        let mut runs: HashMap<TokenKey, Vec<(Tenant, String)>> = HashMap::new();
        shared.service.each_active(|tenant, run, origin| {
            if let Some(token) = token(origin) {
                runs.entry(token).or_default().push((tenant.clone(), run.to_owned()));
            }
        });
        let mut tokens = shared.quotas.tokens();
        tokens.extend(
            runs.keys().copied().filter(|token| !tokens.contains(token)).collect::<Vec<_>>(),
        );
        if tokens.is_empty() {
            continue;
        }
        let unknown = match shared.app.own().store.file().unknown_tokens(tokens).await {
            Ok(unknown) => unknown,
            Err(error) => {
                tracing::warn!(%error, "failed to check the tokens in use");
                continue;
            }
        };
        for token in unknown {
            shared.quotas.end(&token);
            for (tenant, run) in runs.remove(&token).unwrap_or_default() {
                cancel(shared, &tenant, &run).await;
            }
        }
    }
}

/// Cancels a run of a token that was revoked.
async fn cancel(shared: &Shared, tenant: &Tenant, run: &str) {
    let cause = match shared.app.tenant(tenant) {
        Ok(parts) => match shared.service.cancel(&parts.store, run, REVOKED).await {
            Ok(_) => return,
            Err(cause) => cause.to_string(),
        },
        Err(why) => why.to_string(),
    };
    tracing::error!(run, cause, "failed to cancel a run of a revoked token");
}
