//! Compares algorithms written in Wattle's language with the same algorithms in plain WAT.
//!
//! The programs in Wattle's language are the reference programs of tasks in
//! `eval/tasks/algorithms/`.
//! `tests/benches/algorithms/` contains the plain versions, which use only locals and do not check
//! for invalid indices or overflow. The same runtime runs both versions on the task's files, and
//! both must solve the task.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a bench that cannot run fails by a panic"
)]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use wattle_agent::host::ExampleWorld;
use wattle_eval::{Suite, Task};
use wattle_rt::{Grants, Program};
use wattle_tests::World;

const NAMES: [&str; 4] = ["sieve", "edit_distance", "queens", "life"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Returns the reference program of a task from its recorded solution.
fn reference(name: &str) -> String {
    let recording = read(&format!("../eval/tasks/recordings/by-hand/algorithms/{name}.txt"));
    let (_, program) = recording.split_once("```wat\n").unwrap();
    program.split_once("```").unwrap().0.to_owned()
}

/// A version of a task's program, ready to run.
struct Version<'a> {
    world: &'a World,
    task: &'a Task,
    scene: ExampleWorld,
    grants: Arc<Grants>,
    program: Program,
}

impl<'a> Version<'a> {
    async fn new(world: &'a World, task: &'a Task, text: &str) -> Version<'a> {
        let scene = ExampleWorld::new(&task.fixtures).await.unwrap();
        let grants = Arc::new(scene.grants(scene.access(&world.host)));
        let program = world.host.runtime().prepare(text).await.unwrap();
        Version { world, task, scene, grants, program }
    }

    async fn run(&self) -> String {
        let runtime = self.world.host.runtime();
        let outcome = runtime.run(&self.program, &self.grants, Vec::new()).await.unwrap();
        assert!(outcome.success(), "{}: {:?}", self.task.id, outcome.exit);
        outcome.texts().join("\n")
    }

    /// Runs the program and checks that it solves the task.
    async fn check(&self) {
        let printed = self.run().await;
        let problems = self.task.problems(&self.world.host, &self.scene, &printed).await.unwrap();
        assert!(problems.is_empty(), "{}: {problems:?}", self.task.id);
    }
}

/// Times 15 runs of each version, alternating between them so that a busy machine slows both.
/// Returns the medians.
async fn medians(versions: &[Version<'_>; 2]) -> [Duration; 2] {
    let mut times = [[Duration::ZERO; 15]; 2];
    for round in 0..15 {
        for (version, times) in versions.iter().zip(&mut times) {
            let started = Instant::now();
            black_box(version.run().await);
            times[round] = started.elapsed();
        }
    }
    times.map(|mut times| {
        times.sort();
        times[7]
    })
}

fn algorithms(c: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new();
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../eval/tasks");
    let suite = Suite::load(&tasks).unwrap_or_else(|errors| panic!("{errors:?}"));
    for name in NAMES {
        let id = format!("algorithms/{name}");
        let task = suite.tasks.iter().find(|task| task.id == id).unwrap();
        let plain = read(&format!("benches/algorithms/{name}.wat"));
        let versions = tokio.block_on(async {
            let lisp = Version::new(&world, task, &reference(name)).await;
            [lisp, Version::new(&world, task, &plain).await]
        });
        let mut group = c.benchmark_group(name);
        for (version, language) in versions.iter().zip(["the language", "plain WAT"]) {
            tokio.block_on(version.check());
            group.bench_function(language, |b| b.iter(|| tokio.block_on(version.run())));
        }
        group.finish();
        let [lisp, plain] = tokio.block_on(medians(&versions));
        let ratio = lisp.as_secs_f64() / plain.as_secs_f64();
        println!("{name}: {ratio:.2} times plain WAT ({lisp:?}, {plain:?})\n");
    }
}

criterion_group!(benches, algorithms);
criterion_main!(benches);
