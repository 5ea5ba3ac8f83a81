//! The circuit breaker of an endpoint.
//!
//! All requests that a process makes to one model of one endpoint for one owner, such as a tenant, share
//! a breaker: requests of one owner that fail do not delay those of others. It is *closed* while the
//! endpoint works. After [`FAILURES`] failures in a row it *opens*: requests wait. When its delay is
//! over, it is *half-open*: one request is sent as a probe. If the probe fails, the breaker opens
//! for longer; otherwise it closes, and the requests that wait are sent.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::retries::Timeouts;
use super::{ModelError, ModelErrorKind};

/// Number of failures in a row after which the breaker opens.
const FAILURES: u32 = 3;

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BreakerState {
    /// Requests are sent.
    Closed,
    /// One request is sent as a probe, and the others wait.
    HalfOpen,
    /// Requests wait.
    Open,
}

/// The health of a model at its endpoint, as the requests of this process found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointHealth {
    /// The base URL.
    pub endpoint: String,
    /// The model's name.
    pub model: String,
    /// The state of the circuit breaker.
    pub state: BreakerState,
    /// If true, the endpoint rejected the key of the last request.
    pub rejects_key: bool,
    /// Number of failed requests of each kind, including those that were repeated.
    pub errors: BTreeMap<ModelErrorKind, u64>,
}

/// Breakers by base URL, model and owner.
type Breakers = HashMap<(String, String, String), Weak<Breaker>>;

/// The breakers of this process.
static BREAKERS: LazyLock<Mutex<Breakers>> = LazyLock::new(Mutex::default);

/// Returns the health of all models that this process has opened, by base URL and name.
#[must_use]
pub fn endpoints() -> Vec<EndpointHealth> {
    let breakers: Vec<Arc<Breaker>> = lock(&BREAKERS).values().filter_map(Weak::upgrade).collect();
    let mut healths: BTreeMap<(String, String), (bool, EndpointHealth)> = BTreeMap::new();
    for breaker in &breakers {
        let (is_known, health) = breaker.health();
        match healths.entry((health.endpoint.clone(), health.model.clone())) {
            Entry::Vacant(entry) => drop(entry.insert((is_known, health))),
            Entry::Occupied(mut entry) => {
                let (was_known, all) = entry.get_mut();
                all.merge(health, (*was_known, is_known));
                *was_known |= is_known;
            }
        }
    }
    healths.into_values().map(|(_, health)| health).collect()
}

impl EndpointHealth {
    /// Adds what the requests of another owner found. `known` says of each whether there were any
    /// requests. The endpoint works if it works for one owner: requests may fail for reasons of their
    /// own.
    fn merge(&mut self, other: EndpointHealth, known: (bool, bool)) {
        self.state = match known {
            (true, true) => self.state.min(other.state),
            (false, true) => other.state,
            (_, false) => self.state,
        };
        self.rejects_key |= other.rejects_key;
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The circuit breaker of a model at its endpoint.
#[derive(Debug)]
pub(super) struct Breaker {
    endpoint: String,
    model: String,
    circuit: Mutex<Circuit>,
    /// Notifies the requests that wait when the phase changes.
    changed: Notify,
}

#[derive(Debug)]
struct Circuit {
    phase: Phase,
    /// If true, a request had a result.
    has_result: bool,
    /// Number of failures since the last response.
    failures: u32,
    /// The error of the last failure.
    last: Option<ModelError>,
    rejects_key: bool,
    errors: BTreeMap<ModelErrorKind, u64>,
    /// Size of the model's context window, in tokens, if the endpoint has reported it.
    window: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open { until: Instant },
    Probing,
}

/// A request that must wait.
pub(super) struct Blocked {
    /// The time until the next probe, or `None` while a probe is under way.
    pub(super) after: Option<Duration>,
    /// The failure that opened the breaker.
    pub(super) error: ModelError,
}

impl Breaker {
    /// Returns the breaker that all requests of an owner to this model share. The owner is empty if
    /// there is only one.
    pub(super) fn of(endpoint: &str, model: &str, owner: &str) -> Arc<Breaker> {
        let mut breakers = lock(&BREAKERS);
        let key = (endpoint.to_owned(), model.to_owned(), owner.to_owned());
        if let Some(breaker) = breakers.get(&key).and_then(Weak::upgrade) {
            return breaker;
        }
        breakers.retain(|_, breaker| breaker.strong_count() > 0);
        let breaker = Arc::new(Breaker {
            endpoint: key.0.clone(),
            model: key.1.clone(),
            circuit: Mutex::new(Circuit {
                phase: Phase::Closed,
                has_result: false,
                failures: 0,
                last: None,
                rejects_key: false,
                errors: BTreeMap::new(),
                window: None,
            }),
            changed: Notify::new(),
        });
        breakers.insert(key, Arc::downgrade(&breaker));
        breaker
    }

    /// Returns the permit for one request, or the reason why it must wait.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Permit, Blocked> {
        let mut circuit = lock(&self.circuit);
        let is_probe = match circuit.phase {
            Phase::Closed => false,
            Phase::Open { until } if until <= Instant::now() => {
                circuit.phase = Phase::Probing;
                true
            }
            phase => {
                let after = match phase {
                    Phase::Open { until } => Some(until.duration_since(Instant::now())),
                    Phase::Closed | Phase::Probing => None,
                };
                let error = circuit.last.clone().unwrap_or_else(ModelError::hard_timeout);
                return Err(Blocked { after, error });
            }
        };
        Ok(Permit { breaker: Arc::clone(self), is_probe })
    }

    /// Waits until the breaker lets a request pass, but at most until `deadline`. Before each wait,
    /// `on_blocked` is called.
    ///
    /// # Errors
    /// The failure that opened the breaker, if the deadline passes.
    pub(super) async fn entered(
        self: &Arc<Self>,
        deadline: Instant,
        mut on_blocked: impl FnMut(&Blocked),
    ) -> Result<Permit, ModelError> {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let blocked = match self.enter() {
                Ok(permit) => return Ok(permit),
                Err(blocked) => blocked,
            };
            let now = Instant::now();
            if now >= deadline {
                return Err(blocked.error);
            }
            on_blocked(&blocked);
            let next = blocked.after.map_or(deadline, |after| (now + after).min(deadline));
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Returns the size of the model's context window, in tokens, if the endpoint has reported it.
    pub(super) fn window(&self) -> Option<u64> {
        lock(&self.circuit).window
    }

    /// Returns the health that the owner's requests found, and whether there were any.
    fn health(&self) -> (bool, EndpointHealth) {
        let circuit = lock(&self.circuit);
        let health = EndpointHealth {
            endpoint: self.endpoint.clone(),
            model: self.model.clone(),
            state: match circuit.phase {
                Phase::Closed => BreakerState::Closed,
                Phase::Open { .. } => BreakerState::Open,
                Phase::Probing => BreakerState::HalfOpen,
            },
            rejects_key: circuit.rejects_key,
            errors: circuit.errors.clone(),
        };
        (circuit.has_result, health)
    }
}

/// The permit to send one request. If it is dropped without a result, such as when the run is
/// cancelled, another request may be the probe.
pub(super) struct Permit {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Permit {
    /// Records that the endpoint responded to the request as expected.
    pub(super) fn succeeded(self) {
        let mut circuit = lock(&self.breaker.circuit);
        circuit.rejects_key = false;
        self.close(&mut circuit);
    }

    /// Records that the endpoint rejected the request. A rejected key is logged once.
    pub(super) fn rejected(self, error: &ModelError) {
        let mut circuit = lock(&self.breaker.circuit);
        circuit.count(error);
        circuit.window = error.excess().and_then(|excess| excess.window).or(circuit.window);
        let rejects_key = matches!(error.kind(), ModelErrorKind::Key | ModelErrorKind::Credit);
        if rejects_key && !std::mem::replace(&mut circuit.rejects_key, rejects_key) {
            let Breaker { endpoint, model, .. } = &*self.breaker;
            tracing::warn!(endpoint, model, %error, "all requests to the model fail");
        }
        self.close(&mut circuit);
    }

    /// Records a failure that is likely to pass. `asked` is the delay that the endpoint requested.
    pub(super) fn failed(self, error: &ModelError, timeouts: &Timeouts, asked: Option<Duration>) {
        let mut circuit = lock(&self.breaker.circuit);
        circuit.count(error);
        circuit.has_result = true;
        circuit.last = Some(error.clone());
        let is_closed = matches!(circuit.phase, Phase::Closed);
        if !is_closed && !self.is_probe {
            // The request was sent before the breaker opened.
            return;
        }
        circuit.failures = circuit.failures.saturating_add(1);
        let Some(opened) = circuit.failures.checked_sub(FAILURES) else { return };
        circuit.phase = Phase::Open { until: Instant::now() + timeouts.delay(opened, asked) };
        if is_closed {
            let Breaker { endpoint, model, .. } = &*self.breaker;
            tracing::warn!(endpoint, model, %error, "the model does not answer; requests wait");
        }
        self.breaker.changed.notify_waiters();
    }

    fn close(&self, circuit: &mut Circuit) {
        (circuit.failures, circuit.has_result) = (0, true);
        if !matches!(std::mem::replace(&mut circuit.phase, Phase::Closed), Phase::Closed) {
            let Breaker { endpoint, model, .. } = &*self.breaker;
            tracing::info!(endpoint, model, "the model answers again");
            self.breaker.changed.notify_waiters();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut circuit = lock(&self.breaker.circuit);
        if self.is_probe && matches!(circuit.phase, Phase::Probing) {
            circuit.phase = Phase::Open { until: Instant::now() };
            self.breaker.changed.notify_waiters();
        }
    }
}

impl Circuit {
    fn count(&mut self, error: &ModelError) {
        *self.errors.entry(error.kind()).or_default() += 1;
    }
}
