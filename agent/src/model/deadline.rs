//! How long a model is waited for, and how often it is asked again.

use std::time::{Duration, SystemTime};

use super::{Delta, Model, ModelError, ModelReply, ModelRequest};

/// Bounds one model turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time for one request, until the last byte of its response (default 120 s).
    pub request: Duration,
    /// How often a failed request is repeated (default 2).
    pub retries: u32,
    /// What a turn may last beyond its requests (default 15 s); waits between requests count.
    pub slack: Duration,
    /// Wait before the first repetition, doubled for each further one (default 500 ms), where the server names none.
    pub backoff: Duration,
    /// Longest wait before a repetition, even where the server asks for more (default 30 s).
    pub longest_wait: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(120),
            retries: 2,
            slack: Duration::from_secs(15),
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }
}

impl Timeouts {
    /// Gives the wait before repetition `attempt` (0 for the first): what the server asked for, else a random time
    /// between half and the whole of a doubling span, so that clients that failed together do not return together.
    pub(super) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let wait = asked.unwrap_or_else(|| {
            let span = self.backoff.saturating_mul(2_u32.saturating_pow(attempt)).min(self.longest_wait);
            span.mul_f64(0.5 + fastrand::f64() / 2.0)
        });
        wait.min(self.longest_wait)
    }
}

/// Gives the time after which a turn is given up from outside, whatever the HTTP client does:
/// `(retries + 1) × request + slack`, 375 s by default.
pub fn turn_deadline(timeouts: &Timeouts) -> Duration {
    timeouts.request.saturating_mul(timeouts.retries.saturating_add(1)).saturating_add(timeouts.slack)
}

/// Asks a model, streamed, and waits no longer than [`turn_deadline`].
///
/// # Errors
/// Those of the model; `llm hard timeout` once the time has passed.
pub async fn ask_within(
    model: &dyn Model,
    timeouts: &Timeouts,
    request: ModelRequest<'_>,
    on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
) -> Result<ModelReply, ModelError> {
    let turn = tokio::time::timeout(turn_deadline(timeouts), model.stream(request, on_delta));
    turn.await.unwrap_or_else(|_| Err(ModelError::hard_timeout()))
}

/// Reads `Retry-After`: seconds, whole or not, or an HTTP date. What cannot be read is `None`.
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
    fn waits_grow_and_stay_within_their_bounds() {
        let timeouts = Timeouts { longest_wait: Duration::from_secs(3), ..Timeouts::default() };
        for (attempt, low, high) in
            [(0, 250, 500), (1, 500, 1000), (2, 1000, 2000), (3, 1500, 3000), (u32::MAX, 1500, 3000)]
        {
            for _ in 0..100 {
                let wait = timeouts.wait(attempt, None).as_millis();
                assert!((low..=high).contains(&wait), "{attempt}: {wait}");
            }
        }
        assert_eq!(timeouts.wait(0, Some(Duration::from_secs(1))), Duration::from_secs(1));
        assert_eq!(timeouts.wait(0, Some(Duration::from_secs(3600))), Duration::from_secs(3));
    }

    #[test]
    fn the_turn_outlasts_all_of_its_requests() {
        assert_eq!(turn_deadline(&Timeouts::default()), Duration::from_secs(375));
        let endless = Timeouts { request: Duration::MAX, retries: u32::MAX, ..Timeouts::default() };
        assert_eq!(turn_deadline(&endless), Duration::MAX);
    }
}
