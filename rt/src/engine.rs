//! The engine: compiler settings, instance pool, and the clock that ends programs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::AccountLimits;
use crate::run::LEVELS;
use quick_cache::sync::Cache;

use wasmtime::{CacheStore, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

/// How often the epoch advances: the grain of deadlines and of cancellation.
const TICK: Duration = Duration::from_millis(5);

/// The most bytes that one compiled function may have; the incremental cache holds as many as fit its bound.
const INCREMENTAL_BYTES: u64 = 64 << 20;

/// Bounds of the engine and of each program that runs in it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most memory that one program may have, in bytes. Default 64 MiB.
    pub memory: usize,
    /// How long one program may run, host calls included. Default 150 s.
    pub time: Duration,
    /// The most instructions (engine fuel) that one program may use; `None` leaves programs unmetered, and faster.
    pub fuel: Option<u64>,
    /// How many programs may run at once; further ones wait. Programs that they start have places of their own beside these,
    /// half as many for each level of nesting and at least one, so that no program waits for one that waits for it. Default 128.
    pub instances: u32,
    /// The most bytes of compiled programs that the cache holds. Default 256 MiB.
    pub cache: u64,
    /// What all programs of one run may use together.
    pub run: AccountLimits,
    /// Maximum memory that all runs of the process hold together, in bytes. Default 2 GiB.
    pub process_memory: usize,
    /// How long anybody waits for one program to be compiled once that has begun. Default 10 s; what is accepted takes 2 s at most.
    pub compile: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 64 << 20,
            time: Duration::from_secs(150),
            fuel: None,
            instances: 128,
            cache: 256 << 20,
            run: AccountLimits::default(),
            process_memory: 2 << 30,
            compile: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// How many programs of a level of nesting may run at once.
    pub(crate) fn slots(&self, level: usize) -> u32 {
        (self.instances >> level).max(1)
    }
}

/// Makes the engine and starts its clock, which calls `tick` each time.
pub(crate) fn engine(limits: &Limits, tick: impl Fn() + Send + 'static) -> wasmtime::Result<Engine> {
    let engine = Engine::new(&engine_config(limits)?)?;
    start(&engine, tick)?;
    Ok(engine)
}

/// Gives the engine's settings: public so that bare wasmtime can be measured beside the runtime with the same ones.
///
/// # Errors
/// Where this build of the engine lacks what a setting needs.
pub fn engine_config(limits: &Limits) -> wasmtime::Result<wasmtime::Config> {
    let places = (0..LEVELS).fold(0u32, |all, level| all.saturating_add(limits.slots(level)));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(places)
        .total_memories(places)
        .total_tables(places)
        .total_stacks(places)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(10_000)
        .max_memory_size(limits.memory)
        .linear_memory_keep_resident(8 << 10)
        .table_keep_resident(8 << 10)
        .async_stack_keep_resident(8 << 10);

    let mut config = wasmtime::Config::new();
    config
        .cranelift_opt_level(OptLevel::None)
        .memory_init_cow(false)
        // The pool's threads are all that compile; the compiler starts none of its own.
        .parallel_compilation(false)
        // Backtraces walk frame pointers. The tables of the system's unwinder would be registered in one list for the whole
        // process, which is searched from end to end when a program leaves the cache.
        .native_unwind_info(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        .consume_fuel(limits.fuel.is_some())
        .max_wasm_stack(256 << 10)
        .async_stack_size(512 << 10)
        .wasm_relaxed_simd(false)
        // A NaN's bits would else depend on the processor, and a program's results with them.
        .cranelift_nan_canonicalization(true)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config.enable_incremental_compilation(Arc::new(FunctionCache::new()))?;
    Ok(config)
}

/// Advances the epoch for as long as the engine lives.
pub(crate) fn start_clock(engine: &Engine) -> wasmtime::Result<()> {
    start(engine, || {})
}

/// Advances the epoch and calls `tick`, for as long as the engine lives.
fn start(engine: &Engine, tick: impl Fn() + Send + 'static) -> wasmtime::Result<()> {
    let engine = engine.weak();
    std::thread::Builder::new().name("wattle-epoch".to_owned()).spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            tick();
            std::thread::sleep(TICK);
        }
    })?;
    Ok(())
}

/// Machine code of functions and trampolines seen before, by content: most of a new program's trampolines are not new.
struct FunctionCache(Cache<Vec<u8>, Arc<[u8]>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl quick_cache::Weighter<Vec<u8>, Arc<[u8]>> for ByBytes {
    fn weight(&self, key: &Vec<u8>, value: &Arc<[u8]>) -> u64 {
        (key.len() + value.len() + 128) as u64
    }
}

impl FunctionCache {
    fn new() -> Self {
        FunctionCache(Cache::with_weighter(4_096, INCREMENTAL_BYTES, ByBytes))
    }
}

impl std::fmt::Debug for FunctionCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FunctionCache({} entries)", self.0.len())
    }
}

impl CacheStore for FunctionCache {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.0.get(key).map(|code| Cow::Owned(code.to_vec()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        self.0.insert(key.to_vec(), value.into());
        true
    }
}
