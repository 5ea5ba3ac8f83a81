//! Compares stages of shell pipelines with equivalent native processes.
//!
//! The stages and the processes read the same files. Each stage is an instance of the WebAssembly
//! module that contains the commands.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot run fails by a panic"
)]

use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::future::{BoxFuture, join_all};
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_cases::guests::SharedGuests;
use wattle_shell::{Command, Spawn, StageBounds, Status, Stream, Toolbox};

/// Size of the input to sort, in bytes.
const SORTED: usize = 1 << 20;
/// Size of the input to search, in bytes.
const SEARCHED: usize = 10 << 20;

/// Returns unsorted lines with a total size of about `size` bytes.
fn text(size: usize) -> String {
    let mut text = String::with_capacity(size + 64);
    let mut seed = 1u64;
    while text.len() < size {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!(
            "{:016x} level={} user=u{}\n",
            seed,
            ["info", "warn", "error"][(seed >> 40) as usize % 3],
            seed >> 54
        ));
    }
    text
}

/// A spawner for stages that do not start commands.
struct Nothing;

impl Spawn for Nothing {
    fn spawn(&self, _: Command, _: Option<Duration>) -> BoxFuture<'_, Status> {
        Box::pin(async { Status::NOT_FOUND })
    }
}

/// Runs the stages of a pipeline. Returns the size of the output, in bytes.
async fn pipeline(toolbox: &Toolbox, files: &Arc<Files>, stages: &[&[&str]]) -> u64 {
    let (output, captured) = Stream::capture_ends(64 << 10);
    let bounds = StageBounds::default();
    let mut input = Stream::null();
    let mut running = Vec::new();
    for (index, argv) in stages.iter().enumerate() {
        let (next, stdout) = if index + 1 == stages.len() {
            (Stream::null(), output.clone())
        } else {
            Stream::pipe()
        };
        let fds = vec![(0, std::mem::replace(&mut input, next)), (1, stdout), (2, Stream::null())];
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let command = Command { argv, env: Vec::new(), cwd: "/".to_owned(), fds };
        running.push(toolbox.run(command, files, Arc::new(Nothing), &bounds));
    }
    for ended in join_all(running).await {
        assert_eq!(ended.status(), Status::SUCCESS);
    }
    captured.total()
}

/// Runs a pipeline of native processes. Returns the size of the output, in bytes.
fn processes(folder: &Path, stages: &[&[&str]]) -> u64 {
    let mut input = Stdio::null();
    let mut running = Vec::new();
    for argv in stages {
        let mut process = Process::new(argv[0]);
        // With another `PATH`, the standard library would copy this process to start another one,
        // which takes several milliseconds.
        process.args(&argv[1..]).current_dir(folder).env("LC_ALL", "C");
        let mut child = process.stdin(input).stdout(Stdio::piped()).spawn().unwrap();
        input = Stdio::null();
        if running.len() + 1 < stages.len() {
            input = child.stdout.take().unwrap().into();
        }
        running.push(child);
    }
    let mut last = running.last_mut().unwrap().stdout.take().unwrap();
    let total = std::io::copy(&mut last, &mut std::io::sink()).unwrap();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    total
}

/// The benchmarked pipelines: name, and stages split into words.
const PIPELINES: &[(&str, &[&[&str]])] = &[
    ("true", &[&["true"]]),
    ("echo", &[&["echo", "hello", "world"]]),
    (
        "five stages, one line",
        &[
            &["cat", "line.txt"],
            &["grep", "-v", "level=fatal"],
            &["cut", "-d", " ", "-f", "2"],
            &["sort"],
            &["uniq", "-c"],
        ],
    ),
    (
        "five stages, 1 MiB",
        &[
            &["cat", "sorted.txt"],
            &["grep", "-v", "level=info"],
            &["cut", "-d", " ", "-f", "2"],
            &["sort"],
            &["uniq", "-c"],
        ],
    ),
    ("sort 1 MiB", &[&["sort", "sorted.txt"]]),
    ("grep -c 10 MiB", &[&["grep", "-c", "level=error", "searched.txt"]]),
    ("wc -l 10 MiB", &[&["wc", "-l", "searched.txt"]]),
];

fn shell(c: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let toolbox = Toolbox::new(Some(SharedGuests::in_target().folder())).unwrap();
    tokio.block_on(toolbox.prepare()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, size) in [("line.txt", 1), ("sorted.txt", SORTED), ("searched.txt", SEARCHED)] {
        std::fs::write(folder.path().join(name), text(size)).unwrap();
    }
    let files =
        Arc::new(Files::overlay(Some(Files::open_base(folder.path()).unwrap()), OVERLAY_LIMIT));
    for (name, stages) in PIPELINES {
        let mut group = c.benchmark_group(*name);
        group.sample_size(20);
        let native = processes(folder.path(), stages);
        assert_eq!(
            tokio.block_on(pipeline(&toolbox, &files, stages)),
            native,
            "both write as much"
        );
        group.bench_function("wattle", |b| {
            b.iter(|| tokio.block_on(pipeline(&toolbox, &files, stages)))
        });
        group.bench_function("processes", |b| b.iter(|| processes(folder.path(), stages)));
        group.finish();
    }
}

criterion_group!(benches, shell);
criterion_main!(benches);
