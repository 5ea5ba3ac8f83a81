//! Counters for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The counters of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    started: Counter,
    pub(crate) connections: Gauge,
    active: Gauge<i64, AtomicI64>,
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

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("wattle");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register(
            "http_requests",
            "Requests by route, method and status",
            requests.clone(),
        );
        // 1 ms to 16 s.
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
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let active = Gauge::default();
        registry.register("runs_active", "Runs that are queued or driven", active.clone());
        Metrics { registry, requests, durations, started, connections, active }
    }

    /// Counts a request.
    pub(crate) fn request(
        &self,
        route: &str,
        method: &Method,
        status: StatusCode,
        duration: Duration,
    ) {
        // A client can invent methods, so that others are counted together.
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

    /// Returns all counters in the text format of OpenMetrics.
    pub(crate) fn text(&self, active: usize) -> String {
        self.active.set(i64::try_from(active).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
