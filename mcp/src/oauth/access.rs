//! The access token of requests to a server.

use std::sync::Arc;

use tokio::sync::Mutex;
use wattle_agent::host::capability::egress::{Egress, Url};

use super::grant::{Grant, Refused};
use super::tokens::Tokens;
use super::web::Web;

/// An access token is renewed this long before it ends, in seconds.
const AHEAD: u64 = 30;

/// The tokens for one server, renewed when they are needed.
pub(crate) struct Access {
    pub(super) server: Arc<str>,
    /// The URL of the server, as the tokens are bound to it.
    pub(super) url: Url,
    pub(super) client_id: Option<String>,
    pub(super) tokens: Tokens,
    pub(super) web: Web,
    pub(super) current: Mutex<Option<Grant>>,
}

impl Access {
    pub(crate) fn new(
        server: &str,
        url: &Url,
        client_id: Option<String>,
        tokens: Tokens,
        egress: &Egress,
    ) -> Access {
        Access {
            server: server.into(),
            url: url.clone(),
            client_id,
            tokens,
            web: Web::new(egress.clone(), url),
            current: Mutex::default(),
        }
    }

    /// Returns the access token for the next request, or `None` if nobody is signed in. A token that
    /// is about to end is renewed.
    ///
    /// # Errors
    /// If the tokens cannot be read, or not be renewed for a reason that may pass.
    pub(crate) async fn token(&self) -> Result<Option<String>, String> {
        let mut current = self.current.lock().await;
        if current.is_none() {
            *current = self.kept()?;
        }
        let ending = current.as_ref().filter(|grant| grant.ends_within(AHEAD));
        if let Some(old) = ending.map(|grant| grant.access.clone()) {
            self.renew(&mut current, &old).await?;
        }
        Ok(current.as_ref().map(|grant| grant.access.clone()))
    }

    /// Returns another access token after the server rejected one, or `None` if there is none.
    ///
    /// # Errors
    /// The same as for [`Access::token`].
    pub(crate) async fn another(&self, rejected: &str) -> Result<Option<String>, String> {
        let mut current = self.current.lock().await;
        if current.as_ref().is_none_or(|grant| grant.access == rejected) {
            self.renew(&mut current, rejected).await?;
        }
        let other = current.as_ref().map(|grant| grant.access.clone());
        Ok(other.filter(|token| token != rejected))
    }

    /// Replaces the access token `old`, unless another process has done so or has signed out. If the
    /// authorization server rejects the refresh token, nobody is signed in any more.
    async fn renew(&self, current: &mut Option<Grant>, old: &str) -> Result<(), String> {
        let failed = |why: &dyn std::fmt::Display| format!("its token was not renewed: {why}");
        let _lock = self.tokens.lock(&self.server).await.map_err(|error| failed(&error))?;
        *current = None;
        let Some(kept) = self.kept()? else { return Ok(()) };
        if kept.access != old && !kept.ends_within(AHEAD) {
            *current = Some(kept);
            return Ok(());
        }
        match kept.renewed(&self.web).await {
            Ok(grant) => {
                self.tokens.save(&self.server, &grant).map_err(|error| failed(&error))?;
                *current = Some(grant);
            }
            Err(Refused::Rejected(why)) => {
                tracing::info!(server = %self.server, why, "the sign-in has ended");
                self.tokens.remove(&self.server).map_err(|error| failed(&error))?;
            }
            Err(Refused::Failed(_)) if !kept.ends_within(0) => *current = Some(kept),
            Err(Refused::Failed(why)) => return Err(failed(&why)),
        }
        Ok(())
    }

    /// Returns the tokens on disk.
    fn kept(&self) -> Result<Option<Grant>, String> {
        self.tokens.load(&self.server, self.url.as_str()).map_err(|error| error.to_string())
    }
}
