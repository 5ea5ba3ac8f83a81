//! Measures whole steps of the loop with a model that answers immediately: the answer is parsed,
//! its program runs, the observation is added, the turn is recorded, and the next request is built.
//!
//! The steps of the last group also make a call that must not be repeated, so that its records are
//! on the disk before and after it.
//!
//! Each run has many steps, so that the benchmark also shows how a step's time grows with the
//! length of the run. The program is cached, so it is not compiled. The steps "with the engine" have no
//! journal either; the loop is the component that `just component` builds.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run fails by a panic")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use futures_util::future::join_all;
use wattle_agent::host::journal::{self, RunOutcome, SharedJournal};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::{Resources, Settings, Store, Tenant};
use wattle_capability::egress::{HeaderMap, Incoming, Outgoing, StatusCode};
use wattle_capability::files::Files;
use wattle_capability::{PortFuture, http};
use wattle_machine::Ending;
use wattle_tests::{Job, World, engine};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The program of each step. Its argument is the number of the step.
const GREETS: &str = "(argv 0 $name)\n(ret (str.cat \"hello, \" $name))";
/// A program that also makes a request that must not be repeated.
const POSTS: &str = "(argv 0 $name)\n(ret (http.post \"https://a.example/form\" $name \"\"))";

/// A model that calls the same program with a new argument in each step, and then answers.
#[derive(Clone)]
struct Instant {
    program: &'static str,
    steps: u32,
    asked: Arc<AtomicU32>,
}

impl Instant {
    fn new(program: &'static str, steps: u32) -> Instant {
        Instant { program, steps, asked: Arc::default() }
    }
}

/// A network that responds immediately.
struct InstantNetwork;

impl http::Backend for InstantNetwork {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        let (status, headers) = (StatusCode::OK, HeaderMap::new());
        let answer = outgoing.answer(http::Response { status, headers, body: "fine".into() });
        Box::pin(async { Ok(answer) })
    }
}

impl Model for Instant {
    fn name(&self) -> &str {
        "instant"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        let step = self.asked.fetch_add(1, Ordering::Relaxed);
        let text = match step < self.steps {
            true => format!("ToolCall::Wat(```wat\n{}\n```, \"{step}\")", self.program),
            false => "ToolCall::Response(\"done\")".to_owned(),
        };
        Box::pin(async move { Ok(ModelReply { text, ..ModelReply::default() }) })
    }
}

fn settings(steps: u32) -> Settings {
    let machine = wattle_machine::Settings { max_steps: steps + 1, ..Default::default() };
    Settings { machine, orient: false, timeout: None, ..Settings::default() }
}

fn job(world: &World) -> Job {
    Job { trace_dir: None, ..world.job("count") }
}

/// Returns a job whose programs send requests to the instant network.
fn posting_job(world: &World) -> Job {
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let access =
        Resources { network: Arc::new(InstantNetwork), ..Resources::new(&world.host, files) };
    Job::new("count", access.grants())
}

fn steps(c: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new();
    let engine = engine().map(|engine| {
        let world = World::new();
        World { host: world.host.clone().with_engine(Some(engine)), ..world }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = Store::open(&folder.path().join("s.db"), DAY).unwrap().tenant(&Tenant::default());
    let journals: [(&str, SharedJournal); 2] = [
        ("journal in memory", Arc::new(world.store.clone())),
        ("journal in a file", Arc::new(file)),
    ];
    let mut group = c.benchmark_group("steps");
    for steps in [8, 32, 128] {
        group.throughput(Throughput::Elements(u64::from(steps)));
        let worlds = [("without a journal", Some(&world)), ("with the engine", engine.as_ref())];
        for (name, world) in worlds {
            let Some(world) = world else { continue };
            group.bench_with_input(BenchmarkId::new(name, steps), &steps, |b, steps| {
                b.to_async(&tokio).iter(async || {
                    let model = Instant::new(GREETS, *steps);
                    let (report, _) = world.run(&model, &settings(*steps), job(world)).await;
                    let ending = &report.ending;
                    assert!(matches!(ending, Ending::Answered { .. }), "{ending:?}");
                    assert_eq!(report.steps, *steps);
                });
            });
        }
        for (name, journal) in &journals {
            group.bench_with_input(BenchmarkId::new(*name, steps), &steps, |b, steps| {
                b.to_async(&tokio).iter(async || {
                    let model = Instant::new(GREETS, *steps);
                    let sink = |_: &wattle_machine::Envelope| {};
                    let job = job(&world);
                    let (parts, request) = job.on(&world.host, &model, &settings(*steps));
                    let run = journal::run(parts, &request, &sink, journal);
                    let RunOutcome::Done(report) = run.await.unwrap() else {
                        unreachable!("nothing asks a person")
                    };
                    assert_eq!(report.steps, *steps);
                });
            });
        }
    }
    for (name, journal) in &journals {
        posts(&mut group, &tokio, &world, name, journal);
        many_at_once(&mut group, &tokio, &world, name, journal);
    }
    group.finish();
}

/// Measures steps that each make a call that must not be repeated, in one run and in 16 runs.
fn posts(
    group: &mut BenchmarkGroup<'_, WallTime>,
    tokio: &tokio::runtime::Runtime,
    world: &World,
    name: &str,
    journal: &SharedJournal,
) {
    const STEPS: u32 = 32;
    for runs in [1, 16] {
        group.throughput(Throughput::Elements(u64::from(runs * STEPS)));
        let id = BenchmarkId::new(format!("{name}, a POST in each step, runs: {runs}"), STEPS);
        group.bench_function(id, |b| {
            b.to_async(tokio).iter(async || {
                let models: Vec<_> = (0..runs).map(|_| Instant::new(POSTS, STEPS)).collect();
                let runs = models.iter().map(async |model| {
                    let sink = |_: &wattle_machine::Envelope| {};
                    let job = posting_job(world);
                    let (parts, request) = job.on(&world.host, model, &settings(STEPS));
                    let run = journal::run(parts, &request, &sink, journal);
                    let RunOutcome::Done(report) = run.await.unwrap() else {
                        unreachable!("nothing asks a person")
                    };
                    assert!(matches!(report.ending, Ending::Answered { .. }));
                });
                assert_eq!(join_all(runs).await.len(), models.len());
            });
        });
    }
}

/// Measures steps of concurrent runs. They keep the processor busy, so the times do not include the
/// delay until an idle processor wakes up after a journal write.
fn many_at_once(
    group: &mut BenchmarkGroup<'_, WallTime>,
    tokio: &tokio::runtime::Runtime,
    world: &World,
    name: &str,
    journal: &SharedJournal,
) {
    const RUNS: u32 = 16;
    const STEPS: u32 = 32;
    group.throughput(Throughput::Elements(u64::from(RUNS * STEPS)));
    group.bench_function(BenchmarkId::new(format!("{name}, 16 runs at once"), STEPS), |b| {
        b.to_async(tokio).iter(async || {
            let models: Vec<_> = (0..RUNS).map(|_| Instant::new(GREETS, STEPS)).collect();
            let runs = models.iter().map(async |model| {
                let sink = |_: &wattle_machine::Envelope| {};
                let (parts, request) = job(world).on(&world.host, model, &settings(STEPS));
                journal::run(parts, &request, &sink, journal).await.unwrap()
            });
            assert_eq!(join_all(runs).await.len(), models.len());
        });
    });
}

criterion_group!(benches, steps);
criterion_main!(benches);
