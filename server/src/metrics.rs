//! Metrics for Prometheus.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use wattle_agent::host::ledger::lines_read;
use wattle_agent::host::service::{RunMoves, RunStatus};
use wattle_agent::host::{QueueState, StoreTransaction};
use wattle_agent::model::{BreakerState, EndpointHealth};

/// The metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    started: Counter,
    ended: Family<StatusLabels, Counter>,
    provider_errors: Family<ErrorLabels, Counter>,
    provider_waits: Family<ModelLabels, Gauge>,
    pub(crate) connections: Gauge,
    active: Gauge<i64, AtomicI64>,
    taken: Counter,
    lost: Counter,
    ledger_lines: Counter,
    queue: QueueGauges,
    transactions: Family<AccessLabels, Histogram>,
    failed_transactions: Family<AccessLabels, Counter>,
}

/// The gauges of the store's run queue, which all servers of the store share.
#[derive(Default)]
struct QueueGauges {
    waiting: Gauge,
    oldest: Gauge<f64, AtomicU64>,
    driven: Gauge,
    servers: Gauge,
}

/// The run counts of a server and its store.
pub(crate) struct RunCounts {
    /// Number of active runs on this server.
    pub(crate) active: usize,
    /// Number of runs that ended with each status.
    pub(crate) ended: HashMap<RunStatus, u64>,
    /// The models that this server asks.
    pub(crate) models: Vec<EndpointHealth>,
    /// Counts of the runs that moved between servers.
    pub(crate) moves: RunMoves,
    /// The state of the store's queue, or `None` if it cannot be read.
    pub(crate) queue: Option<QueueState>,
}

type AtomicI64 = std::sync::atomic::AtomicI64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    endpoint: String,
    model: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    endpoint: String,
    model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccessLabels {
    access: &'static str,
}

impl QueueGauges {
    fn register(registry: &mut Registry) -> QueueGauges {
        let queue = QueueGauges::default();
        registry.register(
            "queue_runs",
            "Runs of the store that wait for a server",
            queue.waiting.clone(),
        );
        registry.register_with_unit(
            "queue_oldest",
            "Time since the oldest waiting run was requested",
            Unit::Seconds,
            queue.oldest.clone(),
        );
        registry.register(
            "store_runs_driven",
            "Runs of the store that servers drive or have taken",
            queue.driven.clone(),
        );
        registry.register(
            "store_processes",
            "Processes that hold locks in the store and are alive",
            queue.servers.clone(),
        );
        queue
    }

    fn set(&self, state: QueueState) {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.waiting.set(count(state.waiting));
        self.oldest.set(Duration::from_millis(state.oldest_ms).as_secs_f64());
        self.driven.set(count(state.driven));
        self.servers.set(count(state.processes));
    }
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("wattle");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register(
            "http_requests",
            "Requests by route, method and status",
            requests.clone(),
        );
        // Buckets from 1 ms to 16 s.
        let durations = Family::<RouteLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.001, 4.0, 8))
        });
        registry.register_with_unit(
            "http_request_duration",
            "Time until the head of the response",
            Unit::Seconds,
            durations.clone(),
        );
        let started = Counter::<u64, AtomicU64>::default();
        registry.register("runs_started", "Runs that were started", started.clone());
        let ended = Family::<StatusLabels, Counter>::default();
        registry.register("runs_ended", "Runs that ended, by status", ended.clone());
        let provider_errors = Family::<ErrorLabels, Counter>::default();
        registry.register(
            "provider_errors",
            "Failed requests to models, including those that were repeated",
            provider_errors.clone(),
        );
        let provider_waits = Family::<ModelLabels, Gauge>::default();
        registry.register(
            "provider_waits",
            "1 while requests to the model wait because it does not answer, otherwise 0",
            provider_waits.clone(),
        );
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let active = Gauge::default();
        registry.register("runs_active", "Runs that are queued or driven", active.clone());
        let (taken, lost) = (Counter::default(), Counter::default());
        registry.register(
            "runs_taken_over",
            "Begun runs that this server took over",
            taken.clone(),
        );
        registry.register("runs_lost", "Runs that another server took over", lost.clone());
        let ledger_lines = Counter::default();
        registry.register(
            "ledger_lines_read",
            "Lines of ledgers that were read to add seals; grows with the runs of other processes",
            ledger_lines.clone(),
        );
        let queue = QueueGauges::register(&mut registry);
        // Buckets from 0.1 ms to 1.6 s.
        let transactions = Family::<AccessLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.0001, 4.0, 8))
        });
        registry.register_with_unit(
            "store_transaction_duration",
            "Duration of the transactions of the store",
            Unit::Seconds,
            transactions.clone(),
        );
        let failed_transactions = Family::<AccessLabels, Counter>::default();
        registry.register(
            "store_transactions_failed",
            "Transactions of the store that had no effect",
            failed_transactions.clone(),
        );
        Metrics {
            registry,
            requests,
            durations,
            started,
            ended,
            provider_errors,
            provider_waits,
            connections,
            active,
            taken,
            lost,
            ledger_lines,
            queue,
            transactions,
            failed_transactions,
        }
    }

    /// Returns a function that records each store transaction in the metrics.
    pub(crate) fn store_observer(&self) -> impl Fn(StoreTransaction) + Send + Sync + use<> {
        let (durations, failed) = (self.transactions.clone(), self.failed_transactions.clone());
        move |transaction: StoreTransaction| {
            let access = match (transaction.writes, transaction.is_durable) {
                (false, _) => "read",
                (true, false) => "write",
                (true, true) => "durable",
            };
            let labels = AccessLabels { access };
            durations.get_or_create(&labels).observe(transaction.duration.as_secs_f64());
            if transaction.has_failed {
                failed.get_or_create(&labels).inc();
            }
        }
    }

    /// Counts a request and records its duration.
    pub(crate) fn request(
        &self,
        route: &str,
        method: &Method,
        status: StatusCode,
        duration: Duration,
    ) {
        // Clients can invent methods, so all unknown methods are counted together.
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
        let method = known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other");
        let (route, method) = (route.to_owned(), method.to_owned());
        self.durations
            .get_or_create(&RouteLabels { route: route.clone() })
            .observe(duration.as_secs_f64());
        self.requests
            .get_or_create(&RequestLabels { route, method, status: status.as_u16() })
            .inc();
    }

    /// Counts a started run.
    pub(crate) fn run_started(&self) {
        self.started.inc();
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub(crate) fn text(&self, counts: &RunCounts) -> String {
        self.active.set(i64::try_from(counts.active).unwrap_or(i64::MAX));
        for (status, count) in &counts.ended {
            let counter = self.ended.get_or_create(&StatusLabels { status: status.name() });
            counter.inner().store(*count, Ordering::Relaxed);
        }
        for EndpointHealth { endpoint, model, state, errors, .. } in &counts.models {
            let (endpoint, model) = (endpoint.clone(), model.clone());
            for (kind, count) in errors {
                let (endpoint, model, kind) = (endpoint.clone(), model.clone(), kind.name());
                let counter =
                    self.provider_errors.get_or_create(&ErrorLabels { endpoint, model, kind });
                counter.inner().store(*count, Ordering::Relaxed);
            }
            let waits = self.provider_waits.get_or_create(&ModelLabels { endpoint, model });
            waits.set(i64::from(*state != BreakerState::Closed));
        }
        self.taken.inner().store(counts.moves.taken, Ordering::Relaxed);
        self.lost.inner().store(counts.moves.lost, Ordering::Relaxed);
        self.ledger_lines.inner().store(lines_read(), Ordering::Relaxed);
        self.queue.set(counts.queue.unwrap_or_default());
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
