//! Compares the runtime with bare wasmtime, which runs the same module with the same settings.
//!
//! A cold run starts from a new program, and a warm run from a cached program. Bare wasmtime
//! parses, compiles, links and runs the module that the runtime generates from the program, with
//! minimal host functions.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot run fails by a panic"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use wasmtime::{Caller, Engine, InstancePre, Linker, Memory, Module, Store, UpdateDeadline};
use wattle_rt::{Grants, Limits, Runtime, engine_config};

/// A program of typical size: three host calls, a loop, a helper and string literals.
const PROGRAM: &str = include_str!("program.wat");

/// Returns a program whose code differs for each value of `unique`, so that it is not cached.
fn program(unique: u64) -> String {
    format!("(drop (i32.const {}))\n{PROGRAM}", 1_000_000 + unique)
}

static NEXT: AtomicU64 = AtomicU64::new(0);

fn unseen() -> String {
    program(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn wattle() -> (Runtime, Arc<Grants>) {
    let runtime = Runtime::new(wattle_capability::ALL, Limits::default()).unwrap();
    let grants = wattle_capability::pure_grants();
    (runtime, Arc::new(grants))
}

async fn run_wattle(runtime: &Runtime, grants: &Arc<Grants>, text: &str) {
    let program = runtime.prepare(text).await.unwrap();
    let outcome = runtime.run(&program, grants, vec!["world".to_owned()]).await.unwrap();
    assert!(outcome.success());
    black_box(outcome.results);
}

/// The state that the module's imports need.
struct Bare {
    memory: Option<Memory>,
    heap: u32,
    argument: &'static str,
    results: Vec<Vec<u8>>,
}

fn text(memory: &[u8], pointer: i32) -> &[u8] {
    let at = pointer as usize;
    let length = u32::from_le_bytes(memory[at..at + 4].try_into().unwrap()) as usize;
    &memory[at + 4..at + 4 + length]
}

fn put(caller: &mut Caller<'_, Bare>, bytes: &[u8]) -> i32 {
    let memory = caller.data().memory.unwrap();
    let at = caller.data().heap.next_multiple_of(8);
    caller.data_mut().heap = at + 4 + bytes.len() as u32;
    memory.write(&mut *caller, at as usize, &(bytes.len() as u32).to_le_bytes()).unwrap();
    memory.write(&mut *caller, at as usize + 4, bytes).unwrap();
    at as i32
}

fn bare() -> (Engine, Linker<Bare>) {
    let engine = Engine::new(&engine_config(&Limits::default()).unwrap()).unwrap();
    let mut linker: Linker<Bare> = Linker::new(&engine);
    linker
        .func_wrap("sys", "argv", |mut caller: Caller<'_, Bare>, _: i32| {
            let argument = caller.data().argument;
            (put(&mut caller, argument.as_bytes()), 0i32)
        })
        .unwrap();
    linker
        .func_wrap("str", "cat", |mut caller: Caller<'_, Bare>, a: i32, b: i32| {
            let memory = caller.data().memory.unwrap().data(&caller);
            let joined = [text(memory, a), text(memory, b)].concat();
            (put(&mut caller, &joined), 0i32)
        })
        .unwrap();
    linker
        .func_wrap("str", "len", |caller: Caller<'_, Bare>, s: i32| {
            text(caller.data().memory.unwrap().data(&caller), s).len() as i32
        })
        .unwrap();
    linker
        .func_wrap("sys", "resv", |mut caller: Caller<'_, Bare>, s: i32| {
            let result = text(caller.data().memory.unwrap().data(&caller), s).to_vec();
            caller.data_mut().results.push(result);
        })
        .unwrap();
    (engine, linker)
}

fn compile(engine: &Engine, linker: &Linker<Bare>, module: &str) -> InstancePre<Bare> {
    let binary = wat::parse_str(module).unwrap();
    linker.instantiate_pre(&Module::from_binary(engine, &binary).unwrap()).unwrap()
}

async fn run_bare(engine: &Engine, instance: &InstancePre<Bare>) {
    let bare = Bare { memory: None, heap: 1024, argument: "world", results: Vec::new() };
    let mut store = Store::new(engine, bare);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
    let instance = instance.instantiate_async(&mut store).await.unwrap();
    store.data_mut().memory = instance.get_memory(&mut store, "mem.tape");
    let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
    assert_eq!(run.call_async(&mut store, ()).await.unwrap(), 0);
    black_box(store.into_data().results);
}

/// Returns the module that the runtime generates from a program.
fn module(runtime: &Runtime, text: &str) -> String {
    wattle_rt::assemble(text, runtime.signatures()).unwrap().module
}

fn cold(c: &mut Criterion) {
    let tokio = tokio();
    let (runtime, grants) = wattle();
    let (engine, linker) = bare();
    let mut group = c.benchmark_group("cold");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            let texts: Vec<String> = (0..n).map(|_| unseen()).collect();
            let started = Instant::now();
            tokio.block_on(async {
                for text in &texts {
                    run_wattle(&runtime, &grants, text).await;
                }
            });
            started.elapsed()
        });
    });
    group.bench_function("bare wasmtime", |b| {
        b.iter_custom(|n| {
            let modules: Vec<String> = (0..n).map(|_| module(&runtime, &unseen())).collect();
            let started = Instant::now();
            tokio.block_on(async {
                for module in &modules {
                    run_bare(&engine, &compile(&engine, &linker, module)).await;
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
    let (runtime, _) = wattle();
    let text = unseen();
    c.bench_function("assemble", |b| b.iter(|| module(&runtime, black_box(&text))));
}

fn warm(c: &mut Criterion) {
    let tokio = tokio();
    let (runtime, grants) = wattle();
    let (engine, linker) = bare();
    let text = unseen();
    let instance = compile(&engine, &linker, &module(&runtime, &text));
    let mut group = c.benchmark_group("warm");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            tokio.block_on(async {
                let started = Instant::now();
                for _ in 0..n {
                    run_wattle(&runtime, &grants, &text).await;
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
                    run_bare(&engine, &instance).await;
                }
                started.elapsed()
            })
        });
    });
    group.finish();
}

/// Measures a host call, averaged over a loop of 10,000 calls.
fn host_call(c: &mut Criterion) {
    const CALLS: u32 = 10_000;
    let text = include_str!("host_calls.wat");
    let tokio = tokio();
    let (runtime, grants) = wattle();
    let (engine, linker) = bare();
    let instance = compile(&engine, &linker, &module(&runtime, text));
    let mut group = c.benchmark_group("host call");
    group.bench_function("wattle", |b| {
        b.iter_custom(|n| {
            let started = Instant::now();
            tokio.block_on(async {
                for _ in 0..n.div_ceil(u64::from(CALLS)) {
                    run_wattle(&runtime, &grants, text).await;
                }
            });
            per_call(started.elapsed(), n, CALLS)
        });
    });
    group.bench_function("bare wasmtime", |b| {
        b.iter_custom(|n| {
            let started = Instant::now();
            tokio.block_on(async {
                for _ in 0..n.div_ceil(u64::from(CALLS)) {
                    run_bare(&engine, &instance).await;
                }
            });
            per_call(started.elapsed(), n, CALLS)
        });
    });
    group.finish();
}

/// Returns the time for `n` host calls. `elapsed` is the total time of all program runs in the
/// benchmark. Each run makes `calls` calls, so all runs together make `n` calls, rounded up to a
/// multiple of `calls`.
fn per_call(elapsed: Duration, n: u64, calls: u32) -> Duration {
    let made = n.div_ceil(u64::from(calls)) * u64::from(calls);
    elapsed.mul_f64(n as f64 / made as f64)
}

criterion_group!(benches, cold, assemble, warm, host_call);
criterion_main!(benches);
