//! Deadlines and retries for model requests.

use std::time::{Duration, SystemTime};

use super::{Delta, Model, ModelError, ModelReply, ModelRequest};

/// Time limits and retries for one model turn, which is a request with its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum duration of one request, until the last byte of its response (default 120 s).
    pub request: Duration,
    /// Maximum number of retries (default 2).
    pub retries: u32,
    /// Time that a turn may take in addition to its requests, for the delays between them (default
    /// 15 s).
    pub slack: Duration,
    /// Delay before the first retry if the server requests none (default 500 ms). It doubles with
    /// each retry.
    pub backoff: Duration,
    /// Maximum delay before a retry, even if the server requests a longer one (default 30 s).
    pub max_delay: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(120),
            retries: 2,
            slack: Duration::from_secs(15),
            backoff: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }
}

impl Timeouts {
    /// Returns the timeouts, lowered to the given limits. A limit above the current value has no
    /// effect.
    #[must_use]
    pub fn at_most(self, request: Option<Duration>, retries: Option<u32>) -> Timeouts {
        Timeouts {
            request: request.map_or(self.request, |request| request.min(self.request)),
            retries: retries.map_or(self.retries, |retries| retries.min(self.retries)),
            ..self
        }
    }

    /// Returns the delay before retry `attempt` (0 for the first): the delay that the server
    /// requested, or else a random 50% to 100% of a delay that doubles with each retry. The
    /// randomness keeps clients that failed at the same time from retrying at the same time.
    pub(super) fn delay(&self, attempt: u32, requested: Option<Duration>) -> Duration {
        let delay = requested.unwrap_or_else(|| {
            let span =
                self.backoff.saturating_mul(2_u32.saturating_pow(attempt)).min(self.max_delay);
            span.mul_f64(0.5 + fastrand::f64() / 2.0)
        });
        delay.min(self.max_delay)
    }
}

/// Returns the maximum duration of a turn, enforced independently of the HTTP client:
/// `(retries + 1) × request + slack`, 375 s by default.
pub fn turn_deadline(timeouts: &Timeouts) -> Duration {
    timeouts
        .request
        .saturating_mul(timeouts.retries.saturating_add(1))
        .saturating_add(timeouts.slack)
}

/// Requests a streamed answer from a model and waits for at most [`turn_deadline`].
///
/// # Errors
/// The error from the model, or `llm hard timeout` if the deadline passes.
pub async fn ask_within(
    model: &dyn Model,
    timeouts: &Timeouts,
    request: ModelRequest<'_>,
    on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
) -> Result<ModelReply, ModelError> {
    let request = ModelRequest { timeouts: Some(*timeouts), ..request };
    let turn = tokio::time::timeout(turn_deadline(timeouts), model.stream(request, on_delta));
    turn.await.unwrap_or_else(|_| Err(ModelError::hard_timeout()))
}

/// Parses the value of a `Retry-After` header, which is an HTTP date or a number of seconds,
/// possibly with a fraction. Returns the delay from `now`, or `None` if the value is invalid.
pub(super) fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_reads_seconds_and_dates() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (text, expected) in [
            ("7", Some(Duration::from_secs(7))),
            (" 0 ", Some(Duration::ZERO)),
            ("0.25", Some(Duration::from_millis(250))),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(Duration::from_secs(30))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("-5", None),
            ("NaN", None),
            ("inf", None),
            ("1e300", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(text, now), expected, "{text:?}");
        }
    }

    #[test]
    fn delays_grow_up_to_their_maximum() {
        let timeouts = Timeouts { max_delay: Duration::from_secs(3), ..Timeouts::default() };
        for (attempt, low, high) in [
            (0, 250, 500),
            (1, 500, 1000),
            (2, 1000, 2000),
            (3, 1500, 3000),
            (u32::MAX, 1500, 3000),
        ] {
            for _ in 0..100 {
                let wait = timeouts.delay(attempt, None).as_millis();
                assert!((low..=high).contains(&wait), "{attempt}: {wait}");
            }
        }
        assert_eq!(timeouts.delay(0, Some(Duration::from_secs(1))), Duration::from_secs(1));
        assert_eq!(timeouts.delay(0, Some(Duration::from_secs(3600))), Duration::from_secs(3));
    }

    #[test]
    fn the_turn_outlasts_all_of_its_requests() {
        assert_eq!(turn_deadline(&Timeouts::default()), Duration::from_secs(375));
        let endless = Timeouts { request: Duration::MAX, retries: u32::MAX, ..Timeouts::default() };
        assert_eq!(turn_deadline(&endless), Duration::MAX);
    }
}
