//! Measures how a process scales with the number of runs: the memory of runs that wait for their
//! model or are in a host call, the time to start a run when there are many sessions, the time
//! until a cancelled run ends, and the growth of the store and of the runs' durations.
//!
//! Run it with `cargo bench --bench scale`. With `-- --test`, it performs one small round. With
//! `-- --json FILE`, it also writes the growth to a file, from which `just bench-scale` makes
//! plots.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench that cannot run fails by a panic, and prints what it measures"
)]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use tokio::sync::watch;
use wattle_agent::Cancel;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::machine::Message;
use wattle_agent::host::service::{
    AssembleFuture, Outcome, RunAssembler, RunHandle, RunService, ServiceLimits,
};
use wattle_agent::host::{Retention, RunParts, RunRequest, TenantStore};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::{Resources, Settings, Store, Tenant};
use wattle_tests::World;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A model that answers only after the gate opens. If `suspends` is true, it answers the first
/// request of each run immediately, with a program that calls a model.
struct Waiting {
    suspends: bool,
    asked: AtomicUsize,
    gate: watch::Receiver<bool>,
}

impl Waiting {
    fn new(suspends: bool) -> (Arc<Waiting>, watch::Sender<bool>) {
        let (open, gate) = watch::channel(false);
        (Arc::new(Waiting { suspends, asked: AtomicUsize::new(0), gate }), open)
    }

    async fn until_asked(&self, count: usize) {
        while self.asked.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

impl Model for Waiting {
    fn name(&self) -> &str {
        "waiting"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        let newest = request.messages.last().map(|message| message.content.as_str());
        let newest = newest.unwrap_or_default();
        if self.suspends && newest.starts_with("question ") {
            let text =
                "ToolCall::Wat(```wat\n(out (ai.assist \"tea\" \"Explain:\" 0))\n```)".to_owned();
            return Box::pin(async { Ok(ModelReply { text, ..ModelReply::default() }) });
        }
        let mut gate = self.gate.clone();
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if gate.wait_for(|is_open| *is_open).await.is_err() {
                // The measurement has ended.
                std::future::pending::<()>().await;
            }
            let text = "ToolCall::Response(\"done\")".to_owned();
            Ok(ModelReply { text, ..ModelReply::default() })
        })
    }
}

/// A model that writes a new program in the first step of each run, and ends the run in the second.
struct Writing;

impl Model for Writing {
    fn name(&self) -> &str {
        "writing"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        let newest = request.messages.last().map(|message| message.content.as_str());
        let text = match newest.and_then(|text| text.strip_prefix("question ")) {
            Some(number) => {
                format!("ToolCall::Wat(```wat\n(out (str.cat \"{number}\" (arg 0)))\n```, \"x\")")
            }
            None => "ToolCall::Response(\"done\")".to_owned(),
        };
        Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
    }
}

/// A run assembler that uses one model for all runs.
struct Assembler {
    world: World,
    model: Arc<dyn Model>,
}

impl RunAssembler for Assembler {
    fn assemble<'a>(
        &'a self,
        store: &'a TenantStore,
        run: &'a RunRequest,
        _: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        let settings = Settings { timeout: None, orient: false, ..Settings::default() };
        let inference = wattle_agent::host::ModelInference::new(Arc::clone(&self.model), &settings);
        let files = Arc::new(Files::overlay(None, 1 << 20));
        let grants = Resources {
            state: Arc::new(store.state(&run.state_session())),
            inference: Some(Arc::new(inference)),
            ..Resources::new(&self.world.host, files)
        };
        let parts =
            RunParts::new(self.world.host.clone(), Arc::clone(&self.model), grants.grants());
        Box::pin(async move { Ok(RunParts { settings, ..parts }) })
    }
}

/// Creates a run service and returns it with its store. If `store` is `None`, creates an in-memory
/// store.
fn service(
    instances: u32,
    model: Arc<dyn Model>,
    store: Option<&Store>,
) -> (RunService, TenantStore) {
    let limits = wattle_agent::host::rt::Limits { instances, ..Default::default() };
    let world = World::with(limits);
    let store = store.cloned().unwrap_or_else(|| Store::in_memory(DAY).unwrap());
    let limits = ServiceLimits { runs: 100_000, waiting: 100_000, ..ServiceLimits::default() };
    let host = world.host.clone();
    let assembler = Assembler { world, model };
    (RunService::new(host, Arc::new(assembler), limits), store.tenant(&Tenant::default()))
}

async fn start(service: &RunService, store: &TenantStore, count: usize) -> Vec<RunHandle> {
    let mut runs = Vec::with_capacity(count);
    for number in 0..count {
        let request = RunRequest::new(format!("question {number}"));
        runs.push(service.start(store, request, &Cancel::new()).await.unwrap());
    }
    runs
}

/// Returns the resident memory of this process, in MiB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Returns a percentile of `values`. `share` selects the percentile: 0.5 is the median.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

/// Measures the memory of runs that wait for their model or are in a host call.
async fn waiting(what: &str, suspends: bool, count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db"), DAY).unwrap();
    let (model, open) = Waiting::new(suspends);
    let instances = if suspends { count as u32 + 8 } else { 8 };
    let (service, store) = service(instances, Arc::clone(&model) as Arc<dyn Model>, Some(&store));
    // The first run, before the measurement, creates the data that all runs share.
    let first = start(&service, &store, 1).await;
    model.until_asked(1).await;
    let before = memory();
    let runs = start(&service, &store, count).await;
    model.until_asked(count + 1).await;
    let held = memory() - before;
    println!("{count} {what}: {held:.0} MiB more, {:.1} KiB each", held * 1024.0 / count as f64);
    open.send(true).unwrap();
    for run in first.iter().chain(&runs) {
        assert!(matches!(run.outcome().await, Outcome::Ended(_)));
    }
}

/// Measures the time from a message to the first model request of its run, in sessions with a
/// history.
async fn sessions(count: usize, messages: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("s.db"), DAY).unwrap();
    let (model, _open) = Waiting::new(false);
    let (service, of) = service(8, Arc::clone(&model) as Arc<dyn Model>, Some(&store));
    for session in 0..count {
        let history = (0..messages).map(|number| match number % 2 {
            0 => Message::user(format!("question {number} of session {session}, with some words")),
            _ => Message::assistant(format!("answer {number} of session {session}, with words")),
        });
        of.extend(&format!("s{session}"), history.collect()).await.unwrap();
    }
    let mut times = Vec::new();
    for session in 0..count.min(200) {
        let request =
            RunRequest { session: Some(format!("s{session}")), ..RunRequest::new("and now?") };
        let began = Instant::now();
        let _run = service.start(&of, request, &Cancel::new()).await.unwrap();
        while model.asked.load(Ordering::Relaxed) <= session {
            tokio::task::yield_now().await;
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "{count} sessions of {messages} messages: from a message to the first request p50 {:.2} \
         ms, p99 {:.2} ms",
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.99)
    );
}

/// Measures the time from a cancellation to the end of the run, for runs that wait for their model
/// and for runs in a host call. All runs are cancelled at the same time.
async fn cancellations(count: usize) {
    for (what, suspends) in [("a request", false), ("a host call", true)] {
        let (model, _open) = Waiting::new(suspends);
        let (service, store) =
            service(count as u32 + 8, Arc::clone(&model) as Arc<dyn Model>, None);
        let runs = start(&service, &store, count).await;
        model.until_asked(count).await;
        let ended = runs.iter().map(async |run| {
            let began = Instant::now();
            run.cancel().cancel("the bench");
            run.outcome().await;
            began.elapsed().as_secs_f64() * 1e3
        });
        let mut times = join_all(ended).await;
        println!(
            "cancelling {count} runs in {what}: p50 {:.1} ms, p99 {:.1} ms",
            percentile(&mut times, 0.5),
            percentile(&mut times, 0.99)
        );
    }
}

/// Measures how the store's size, the duration of a run and the process's memory grow with the
/// number of runs. Each run compiles a new program. `keeps` is the time for which a run is kept
/// after its end.
async fn growth(what: &str, runs: usize, keeps: Duration) -> Json {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let retention = Retention { runs: Some(keeps), ..Retention::default() };
    let store = Store::open(&file, DAY).unwrap().keeping(retention);
    let (service, of) = service(8, Arc::new(Writing), Some(&store));
    let (mut done, mut next, mut grown) = (0, runs / 16, Vec::new());
    while done < runs {
        let began = Instant::now();
        let batch = next - done;
        for number in done..next {
            let request = RunRequest::new(format!("question {number}"));
            let run = service.start(&of, request, &Cancel::new()).await.unwrap();
            assert!(matches!(run.outcome().await, Outcome::Ended(_)));
        }
        (done, next) = (next, (next + runs / 16).min(runs));
        let ms = began.elapsed().as_secs_f64() * 1e3 / batch as f64;
        let bytes = std::fs::metadata(&file).unwrap().len() as f64;
        let (store, memory) = (bytes / 1024.0 / 1024.0, memory());
        println!(
            "{what}, after {done} runs: {ms:.2} ms a run, store {store:.1} MiB, memory {memory:.0} \
             MiB"
        );
        grown.push(json!({"runs": done, "time": ms, "store": store, "memory": memory}));
    }
    json!({"name": what, "growth": grown})
}

/// Returns the path given with `--json`, if any. The measured growth is written to the file at this
/// path, for the plots.
fn path_of_plots() -> Option<String> {
    std::env::args().skip_while(|arg| arg != "--json").nth(1)
}

#[tokio::main]
async fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let small = |small, large| if is_test { small } else { large };
    waiting("runs that wait for their model", false, small(50, 10_000)).await;
    waiting("programs in a host call", true, small(20, 1_000)).await;
    sessions(small(5, 1_000), small(10, 100)).await;
    cancellations(small(10, 100)).await;
    let kept = growth("all runs kept", small(32, 100_000), DAY).await;
    let pruned = growth("runs kept for 10 s", small(32, 100_000), Duration::from_secs(10)).await;
    if let Some(path) = path_of_plots() {
        std::fs::write(path, json!([kept, pruned]).to_string()).unwrap();
    }
}
