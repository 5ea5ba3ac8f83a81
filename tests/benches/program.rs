//! Compares the runtime with bare wasmtime, which runs the same module with the same settings.
//!
//! A cold run starts from a new program, and a warm run from a cached program. Bare wasmtime
//! parses, compiles, links and runs the module that the runtime generates from the program, with
//! minimal host functions.

mod typical;

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use typical::{Bare, CALLING, CALLS, PARSING, Wattle, tokio};

static NEXT: AtomicU32 = AtomicU32::new(0);

fn unseen() -> String {
    typical::unseen(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the two sides, with the settings of a process that runs many programs.
fn sides() -> (Wattle, Bare) {
    let instances = wattle_rt::Limits::default().instances;
    (Wattle::new(instances), Bare::same_settings(instances))
}

fn cold(c: &mut Criterion) {
    let tokio = tokio();
    let (wattle, bare) = sides();
    let mut group = c.benchmark_group("cold");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            let texts: Vec<String> = (0..n).map(|_| unseen()).collect();
            let started = Instant::now();
            tokio.block_on(async {
                for text in &texts {
                    wattle.run(text).await;
                }
            });
            started.elapsed()
        });
    });
    group.bench_function("bare wasmtime", |b| {
        b.iter_custom(|n| {
            let modules: Vec<_> = (0..n).map(|_| wattle.assemble(&unseen())).collect();
            let started = Instant::now();
            tokio.block_on(async {
                for module in &modules {
                    bare.run(&bare.compile(module)).await;
                }
            });
            started.elapsed()
        });
    });
    group.finish();
}

/// Measures the step of a cold run that bare wasmtime does not perform: converting the author's
/// program to a module in the text format.
fn assemble(c: &mut Criterion) {
    let (wattle, _) = sides();
    let text = unseen();
    c.bench_function("assemble", |b| b.iter(|| wattle.assemble(black_box(&text))));
}

fn warm(c: &mut Criterion) {
    let tokio = tokio();
    let (wattle, bare) = sides();
    let text = unseen();
    let compiled = bare.compile(&wattle.assemble(&text));
    let mut group = c.benchmark_group("warm");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            tokio.block_on(async {
                let started = Instant::now();
                for _ in 0..n {
                    wattle.run(&text).await;
                }
                started.elapsed()
            })
        });
    });
    group.bench_function("bare wasmtime", |b| {
        b.iter_custom(|n| {
            tokio.block_on(async {
                let started = Instant::now();
                for _ in 0..n {
                    bare.run(&compiled).await;
                }
                started.elapsed()
            })
        });
    });
    group.finish();
}

/// Measures a host call, averaged over a loop of 10,000 calls.
fn host_call(c: &mut Criterion) {
    let tokio = tokio();
    let (wattle, bare) = sides();
    let compiled = bare.compile(&wattle.assemble(CALLING));
    let mut group = c.benchmark_group("host call");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            let started = Instant::now();
            tokio.block_on(async {
                for _ in 0..n.div_ceil(u64::from(CALLS)) {
                    wattle.run(CALLING).await;
                }
            });
            per_call(started.elapsed(), n)
        });
    });
    group.bench_function("bare wasmtime", |b| {
        b.iter_custom(|n| {
            let started = Instant::now();
            tokio.block_on(async {
                for _ in 0..n.div_ceil(u64::from(CALLS)) {
                    bare.run(&compiled).await;
                }
            });
            per_call(started.elapsed(), n)
        });
    });
    group.finish();
}

/// Returns the time for `n` host calls. `elapsed` is the total time of all program runs in the
/// benchmark. Each run makes [`CALLS`] calls, so all runs together make `n` calls, rounded up to a
/// multiple of [`CALLS`].
fn per_call(elapsed: Duration, n: u64) -> Duration {
    let made = n.div_ceil(u64::from(CALLS)) * u64::from(CALLS);
    elapsed.mul_f64(n as f64 / made as f64)
}

/// Measures parsing 200 KB of records to values, beside the parser of `serde_json`.
fn parse(c: &mut Criterion) {
    let tokio = tokio();
    let (wattle, _) = sides();
    let records: Vec<String> = (0..2_000)
        .map(|n| {
            format!(
                r#"{{"id":{n},"name":"user {n}","email":"u{n}@example.com","price":{n}.95,"active":true,"tags":["a","b"]}}"#
            )
        })
        .collect();
    let text = format!("[{}]", records.join(","));
    let mut group = c.benchmark_group("parse");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            tokio.block_on(async {
                let started = Instant::now();
                for _ in 0..n {
                    wattle.run_with(PARSING, &text).await;
                }
                started.elapsed()
            })
        });
    });
    group.bench_function("serde_json", |b| {
        b.iter(|| serde_json::from_str::<serde_json::Value>(&text));
    });
    group.finish();
}

criterion_group!(benches, cold, assemble, warm, host_call, parse);
criterion_main!(benches);
