//! The rate of requests of each token.

use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::error::ApiError;
use crate::settings::Limits;

/// Maximum number of tokens whose rate is remembered. Beyond it, those at rest are forgotten.
const MAX_TOKENS: usize = 10_000;

/// The rates of all tokens.
pub(crate) struct Quotas {
    limiter: DefaultKeyedRateLimiter<[u8; 32]>,
    per_minute: NonZeroU32,
}

impl Quotas {
    pub(crate) fn new(limits: &Limits) -> Quotas {
        let per_minute = NonZeroU32::new(limits.requests_per_minute).unwrap_or(NonZeroU32::MIN);
        Quotas { limiter: RateLimiter::keyed(Quota::per_minute(per_minute)), per_minute }
    }

    /// Counts a request with this token.
    pub(crate) fn check(&self, token: &[u8]) -> Result<(), ApiError> {
        if self.limiter.len() > MAX_TOKENS {
            self.limiter.retain_recent();
        }
        let key = *blake3::hash(token).as_bytes();
        self.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            ApiError::too_many_requests(self.per_minute.get(), wait)
        })
    }
}
