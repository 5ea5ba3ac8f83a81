//! Deadlines and retries for model requests.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::breaker::{Blocked, Breaker, Permit};
use super::{Delta, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest};

/// Maximum number of attempts for a request whose responses are no chat completions. Waiting does
/// not help against a wrong address or an incompatible server.
const MALFORMED_ATTEMPTS: u32 = 3;

/// Time limits for one model turn, which is a request with its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum duration of one request, until the last byte of its response (default 120 s).
    pub request: Duration,
    /// Time for which a request that fails temporarily is repeated, from its first failure on
    /// (default 60 s).
    pub retry_for: Duration,
    /// Time that a turn may take in addition to its requests and retries (default 15 s).
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
            retry_for: Duration::from_secs(60),
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
    pub fn at_most(self, request: Option<Duration>, retry_for: Option<Duration>) -> Timeouts {
        Timeouts {
            request: request.map_or(self.request, |request| request.min(self.request)),
            retry_for: retry_for.map_or(self.retry_for, |time| time.min(self.retry_for)),
            ..self
        }
    }

    /// Returns the delay before retry `attempt` (0 for the first): the delay that the server
    /// requested, but at least half of `backoff`, or else a random 50% to 100% of a delay that
    /// doubles with each retry. The randomness keeps clients that failed at the same time from
    /// retrying at the same time.
    pub(super) fn delay(&self, attempt: u32, requested: Option<Duration>) -> Duration {
        let delay = requested.map_or_else(
            || {
                let span =
                    self.backoff.saturating_mul(2_u32.saturating_pow(attempt)).min(self.max_delay);
                span.mul_f64(0.5 + fastrand::f64() / 2.0)
            },
            |requested| requested.max(self.backoff / 2),
        );
        delay.min(self.max_delay)
    }
}

/// Returns the maximum duration of a turn, enforced independently of the HTTP client:
/// `2 × request + retry_for + slack`, 315 s by default. `retry_for` begins when the first request
/// has failed, and the last retry may begin at its end.
pub fn turn_deadline(timeouts: &Timeouts) -> Duration {
    let Timeouts { request, retry_for, slack, .. } = *timeouts;
    request.saturating_mul(2).saturating_add(retry_for).saturating_add(slack)
}

/// The retries of one request. Each attempt passes the endpoint's circuit breaker.
pub(super) struct Retries<'a> {
    breaker: &'a Arc<Breaker>,
    timeouts: Timeouts,
    /// Time at which the request first failed, or first had to wait.
    failing_since: Option<Instant>,
    /// Number of attempts.
    attempts: u32,
    /// If true, the current wait was reported.
    is_reported: bool,
}

/// A function that is notified when a request has to wait.
pub(super) type OnWait<'a> = &'a mut (dyn FnMut(Delta<'_>) + Send);

impl<'a> Retries<'a> {
    pub(super) fn new(breaker: &'a Arc<Breaker>, timeouts: Timeouts) -> Self {
        Retries { breaker, timeouts, failing_since: None, attempts: 0, is_reported: false }
    }

    /// Waits until the breaker lets the next attempt pass.
    ///
    /// # Errors
    /// The failure that opened the breaker, if it stays open for longer than the request is retried.
    pub(super) async fn admit(&mut self, on_wait: OnWait<'_>) -> Result<Permit, ModelError> {
        let since = self.failing_since;
        let deadline = deadline(since.unwrap_or_else(Instant::now), self.timeouts.retry_for);
        let is_reported = &mut self.is_reported;
        let permit = self.breaker.entered(deadline, |Blocked { after, error }| {
            if !std::mem::replace(is_reported, true) {
                let (after, reason) = (after.unwrap_or_default(), error.to_string());
                on_wait(Delta::Retry { after, reason: &reason });
            }
        });
        let begun = Instant::now();
        let permit = permit.await.map_err(|error| error.after(self.attempts))?;
        if std::mem::take(&mut self.is_reported) && since.is_none() {
            self.failing_since = Some(begun);
        }
        self.attempts = self.attempts.saturating_add(1);
        Ok(permit)
    }

    /// Records that the attempt failed, and waits until the next one. `asked` is the delay that the
    /// endpoint requested.
    ///
    /// # Errors
    /// The failure, if the request is not repeated.
    pub(super) async fn wait(
        &mut self,
        permit: Permit,
        error: ModelError,
        asked: Option<Duration>,
        on_wait: OnWait<'_>,
    ) -> Result<(), ModelError> {
        permit.failed(&error, &self.timeouts, asked);
        if error.kind() == ModelErrorKind::Malformed && self.attempts >= MALFORMED_ATTEMPTS {
            return Err(error.after(self.attempts));
        }
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let left = self.timeouts.retry_for.saturating_sub(since.elapsed());
        let delay = self.timeouts.delay(self.attempts.saturating_sub(1), asked);
        // The last retry begins when the time is over, unless the server asks for a longer delay.
        let delay =
            if asked.is_none() { delay.min(left.max(self.timeouts.backoff)) } else { delay };
        if delay > left {
            return Err(error.after(self.attempts));
        }
        tracing::debug!(%error, wait_ms = delay.as_millis(), "asking the model again");
        on_wait(Delta::Retry { after: delay, reason: &error.to_string() });
        self.is_reported = true;
        tokio::time::sleep(delay).await;
        Ok(())
    }

    /// Records that the endpoint rejected the attempt, and returns the error of the request.
    pub(super) fn give_up(&self, permit: Permit, error: ModelError) -> ModelError {
        permit.rejected(&error);
        error.after(self.attempts)
    }
}

/// Returns the time after `span`, or a time far in the future if there is none.
fn deadline(from: Instant, span: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    from + span.min(FAR)
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::error::RequestContext;
    use crate::provider_error::is_retryable;
    use crate::{BreakerState, endpoints};

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
        assert_eq!(turn_deadline(&Timeouts::default()), Duration::from_secs(315));
        let endless =
            Timeouts { request: Duration::MAX, retry_for: Duration::MAX, ..Timeouts::default() };
        assert_eq!(turn_deadline(&endless), Duration::MAX);
    }

    /// Asks an endpoint that fails with `status` until `over`, with a latency of 20 ms. Counts the
    /// requests, and the retries that are reported.
    async fn ask_stormy(
        breaker: Arc<Breaker>,
        status: u16,
        over: Instant,
        counts: Arc<[AtomicU32; 2]>,
    ) -> Result<(), ModelError> {
        let [requests, waits] = &*counts;
        let timeouts = Timeouts::default();
        let mut retries = Retries::new(&breaker, timeouts);
        let mut on_wait = |_: Delta<'_>| {
            waits.fetch_add(1, Ordering::Relaxed);
        };
        loop {
            let permit = retries.admit(&mut on_wait).await?;
            requests.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            if Instant::now() >= over {
                permit.succeeded();
                return Ok(());
            }
            let error = status_error(status);
            if !is_retryable(status) {
                return Err(retries.give_up(permit, error));
            }
            retries.wait(permit, error, None, &mut on_wait).await?;
        }
    }

    fn status_error(status: u16) -> ModelError {
        let context = RequestContext {
            url: "http://m.example",
            model: "m",
            key_variable: "WATTLE_API_KEY",
            with_key: true,
        };
        ModelError::of_status(context, status, "")
    }

    async fn storm(
        name: &str,
        (status, lasts): (u16, u64),
        runs: usize,
    ) -> (Vec<Result<(), ModelError>>, u32, u32) {
        let breaker = Breaker::of(name, "m", "");
        let (counts, begun) = (Arc::new([const { AtomicU32::new(0) }; 2]), Instant::now());
        let over = begun + Duration::from_secs(lasts);
        let asked = (0..runs).map(|_| {
            tokio::spawn(ask_stormy(Arc::clone(&breaker), status, over, Arc::clone(&counts)))
        });
        let ended = futures_util::future::join_all(asked).await;
        let [requests, waits] = &*counts;
        let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        (ended.into_iter().map(Result::unwrap).collect(), count(requests), count(waits))
    }

    #[tokio::test(start_paused = true)]
    async fn fifty_runs_outlast_a_storm_with_few_requests() {
        let (ended, requests, waits) = storm("http://storm.example", (503, 8), 50).await;
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        assert!((100..120).contains(&requests), "{requests} requests");
        assert!(waits >= 50, "{waits} waits");
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_that_lasts_too_long_ends_the_request_in_time() {
        let (begun, time) = (Instant::now(), Timeouts::default().retry_for);
        let _kept = Breaker::of("http://long.example", "m", "");
        let (ended, requests, _) = storm("http://long.example", (503, 600), 50).await;
        assert!(ended.iter().all(Result::is_err), "{ended:?}");
        assert!(begun.elapsed() < time + Duration::from_secs(1), "{:?}", begun.elapsed());
        assert!(requests < 70, "{requests} requests");
        // A request that comes later waits for the breaker, too, and is not sent more often than
        // the others.
        let (later, more, _) = storm("http://long.example", (503, 600), 50).await;
        assert!(later.iter().all(Result::is_err));
        assert!(more < 20, "{more} requests");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_key_is_not_retried() {
        for status in [400, 401, 404] {
            let begun = Instant::now();
            let name = format!("http://rejects-{status}.example");
            let breaker = Breaker::of(&name, "m", "");
            let (ended, requests, waits) = storm(&name, (status, 600), 5).await;
            assert!(ended.iter().all(Result::is_err));
            assert_eq!((requests, waits, begun.elapsed().as_secs()), (5, 0, 0), "{status}");
            let health = endpoints().into_iter().find(|health| health.endpoint == name).unwrap();
            assert_eq!(health.errors.values().sum::<u64>(), 5);
            assert_eq!((health.state, health.rejects_key), (BreakerState::Closed, status == 401));
            drop(breaker);
        }
    }

    #[test]
    fn failures_of_one_owner_do_not_delay_the_requests_of_another() {
        let endpoint = "http://shared.example";
        let [one, other] = ["one", "other"].map(|owner| Breaker::of(endpoint, "m", owner));
        let state = || {
            let all = crate::endpoints();
            all.into_iter().find(|health| health.endpoint == endpoint).unwrap().state
        };
        for _ in 0..3 {
            let Ok(permit) = one.enter() else { panic!("the breaker is closed") };
            permit.failed(&status_error(503), &Timeouts::default(), None);
        }
        assert!(one.enter().is_err());
        assert_eq!(state(), crate::BreakerState::Open, "nobody else has asked");
        let Ok(permit) = other.enter() else { panic!("the failures are of another owner") };
        permit.succeeded();
        assert_eq!(state(), crate::BreakerState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_cancelled_is_repeated_by_another_request() {
        let breaker = Breaker::of("http://cancelled.example", "m", "");
        let timeouts = Timeouts::default();
        for _ in 0..3 {
            let Ok(permit) = breaker.enter() else { panic!("the breaker is closed") };
            permit.failed(&status_error(503), &timeouts, None);
        }
        assert!(breaker.enter().is_err());
        tokio::time::sleep(timeouts.backoff).await;
        let Ok(probe) = breaker.enter() else { panic!("the delay is over") };
        assert!(breaker.enter().is_err(), "one probe at a time");
        drop(probe);
        let Ok(probe) = breaker.enter() else { panic!("another probe") };
        probe.succeeded();
        assert!(breaker.enter().is_ok() && breaker.enter().is_ok());
    }
}
