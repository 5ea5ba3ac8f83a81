//! Measures the throughput of servers that share a store: the number of runs per second that
//! complete on one server with SQLite, and on one, two and three servers with one PostgreSQL
//! database. Also reports the share of a run's time that is spent in the store when runs execute
//! one at a time. Each run executes one program and returns an answer. The model answers
//! immediately.
//!
//! The servers, PostgreSQL, the model and the clients all run on the same machine.
//!
//! Afterwards, the benchmark uses the processor times of the last measurement to simulate up to
//! 10,000 runs per second.
//!
//! Run it with `cargo bench --bench replicas`. With `-- --test`, it runs one small round. If
//! PostgreSQL is not installed, it measures only SQLite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on has failed"
)]

mod serve;
#[path = "serve/simulation.rs"]
mod simulation;

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wattle_tests::provider::{Answer, Provider, Recorded};

use serve::Server;
use simulation::Measured;

/// Number of clients that start runs at the same time.
const CLIENTS: usize = 8;
/// Maximum time to wait for all runs to end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the sum of a metric over all servers.
fn sum(servers: &[Server], name: &str) -> f64 {
    let of = |server: &Server| -> f64 {
        let mut text = String::new();
        server.send("GET /metrics", "").read_to_string(&mut text).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    servers.iter().map(of).sum()
}

/// Starts a run and returns its id.
fn start(server: &Server) -> String {
    let mut text = String::new();
    let mut answer = server.send("POST /api/run", "{\"prompt\":\"add\"}");
    answer.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 202"), "{text}");
    let id = text.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    id.expect("a run has an id").to_owned()
}

/// Follows the stream of a run until its last event.
fn follow(server: &Server, run: &str) {
    let mut text = String::new();
    let mut stream = server.send(&format!("GET /api/run/{run}/stream"), "");
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("\"type\":\"response\""), "{text}");
}

/// Waits until the model has received `requests` requests and no server is driving a run.
fn wait(servers: &[Server], asked: &AtomicUsize, requests: usize) {
    let began = Instant::now();
    while asked.load(Ordering::Relaxed) < requests || sum(servers, "wattle_store_runs_driven") > 0.0
    {
        assert!(began.elapsed() < PATIENCE, "the runs do not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Measures `count` servers that share the store, or one server with SQLite if `store` is `None`.
/// Returns the average processor times and the average number of transactions per run.
fn measure(count: usize, store: Option<&str>, runs: usize) -> Measured {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let provider = Provider::answering(move |request: &Recorded| {
        counter.fetch_add(1, Ordering::Relaxed);
        // The prompt itself contains this string once.
        match request.body.matches("[Observation (step ").count() {
            0 | 1 => Answer::text("ToolCall::Wat(```wat\n(out (+ 1 2))\n```)"),
            _ => Answer::text("ToolCall::Response(\"3\")"),
        }
    });
    let home = tempfile::tempdir().unwrap();
    let settings: Vec<(&str, &str)> = store
        .iter()
        .map(|url| ("WATTLE_STORE", *url))
        .chain([("WATTLE_SERVE_QUEUE", "100000")])
        .collect();
    let servers: Vec<Server> =
        (0..count).map(|_| Server::start(&provider.base_url(), home.path(), &settings)).collect();
    // The first run compiles the program.
    start(&servers[0]);
    wait(&servers, &asked, 2);

    let (one_by_one, spent) = (runs / 10, "wattle_store_transaction_duration_seconds_sum");
    let (transactions, before) =
        ("wattle_store_transaction_duration_seconds_count", sum(&servers, spent));
    let counted = sum(&servers, transactions);
    let began = Instant::now();
    for _ in 0..one_by_one {
        follow(&servers[0], &start(&servers[0]));
    }
    let each = began.elapsed().as_secs_f64() / one_by_one as f64;
    let store_time = (sum(&servers, spent) - before) / one_by_one as f64;
    let per_run = (sum(&servers, transactions) - counted) / one_by_one as f64;
    wait(&servers, &asked, 2 * (one_by_one + 1));

    let busy = || -> f64 { servers.iter().map(Server::processor_time).sum() };
    let (of_servers, of_database) = (busy(), postgres_time());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let servers = &servers;
            scope.spawn(move || {
                for run in (client..runs).step_by(CLIENTS) {
                    start(&servers[run % servers.len()]);
                }
            });
        }
    });
    wait(&servers, &asked, 2 * (one_by_one + runs + 1));
    let rate = runs as f64 / began.elapsed().as_secs_f64();
    println!(
        "{} {}: {rate:.0} runs/s of {runs}; one at a time {:.2} ms, of which the store {:.2} ms \
         ({:.0} %) in {per_run:.1} transactions",
        count,
        if store.is_some() { "on PostgreSQL" } else { "on SQLite" },
        each * 1e3,
        store_time * 1e3,
        100.0 * store_time / each,
    );
    Measured {
        database: (postgres_time() - of_database) / runs as f64,
        server: (busy() - of_servers) / runs as f64,
        transactions: per_run,
    }
}

/// Returns the processor time used so far by all PostgreSQL processes, in seconds.
fn postgres_time() -> f64 {
    let Some(processes) = wattle_cases::postgres::processes() else { return 0.0 };
    processes.into_iter().map(serve::processor_time).sum()
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (runs, most) = if is_test { (20, 2) } else { (800, 3) };
    measure(1, None, runs);
    let mut measured = None;
    for count in 1..=most {
        if let Some(url) = wattle_cases::postgres::own_url() {
            measured = Some(measure(count, Some(&url), runs));
        }
    }
    if let Some(measured) = measured {
        println!(
            "a run takes {:.2} ms of the database's processors and {:.2} ms of the server's",
            measured.database * 1e3,
            measured.server * 1e3
        );
        for rate in [10.0, 100.0, 1_000.0, 10_000.0] {
            simulation::print(measured, rate, if is_test { 200 } else { 100_000 });
        }
    }
}
