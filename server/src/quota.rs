//! Limits on the request rate and the number of active runs per token.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::error::ApiError;
use crate::settings::Limits;

/// Maximum number of tokens whose request rate is tracked. If there are more, idle tokens are
/// dropped.
const MAX_TOKENS: usize = 10_000;

/// The hash of a token.
pub(crate) type TokenKey = [u8; 32];

/// The request rates and active runs of all tokens.
pub(crate) struct Quotas {
    limiter: DefaultKeyedRateLimiter<TokenKey>,
    per_minute: NonZeroU32,
    active: Arc<Active>,
    max_active: usize,
}

/// Number of active runs by token. Tokens without active runs are absent.
#[derive(Default)]
struct Active(Mutex<HashMap<TokenKey, usize>>);

/// A token's slot for an active run. Dropping it frees the slot.
pub(crate) struct RunSlot {
    active: Arc<Active>,
    key: TokenKey,
}

/// Returns the hash of a token.
pub(crate) fn key(token: &[u8]) -> TokenKey {
    *blake3::hash(token).as_bytes()
}

impl Quotas {
    pub(crate) fn new(limits: &Limits) -> Quotas {
        let per_minute = NonZeroU32::new(limits.requests_per_minute).unwrap_or(NonZeroU32::MIN);
        Quotas {
            limiter: RateLimiter::keyed(Quota::per_minute(per_minute)),
            per_minute,
            active: Arc::default(),
            max_active: limits.runs_per_token,
        }
    }

    /// Counts a request with this token. Fails if the token exceeds its rate limit.
    pub(crate) fn check(&self, key: TokenKey) -> Result<(), ApiError> {
        if self.limiter.len() > MAX_TOKENS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            ApiError::too_many_requests(self.per_minute.get(), wait)
        })
    }

    /// Acquires a slot for a run that a token starts. Fails if all of the token's slots are in use.
    pub(crate) fn slot(&self, key: TokenKey) -> Result<RunSlot, ApiError> {
        let mut active = self.active.lock();
        let count = active.entry(key).or_default();
        if *count >= self.max_active {
            return Err(ApiError::too_many_runs_of_token(self.max_active));
        }
        *count += 1;
        Ok(RunSlot { active: Arc::clone(&self.active), key })
    }
}

impl Active {
    fn lock(&self) -> MutexGuard<'_, HashMap<TokenKey, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut active = self.active.lock();
        if let Some(count) = active.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                active.remove(&self.key);
            }
        }
    }
}
