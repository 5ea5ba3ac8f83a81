//! The engine: compiler settings, the instance pool, and the clock that ends programs.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::AccountLimits;
use crate::run::LEVELS;
use quick_cache::sync::Cache;

use wasmtime::{CacheStore, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

/// Interval at which the engine's epoch advances. It is the granularity of deadlines and
/// cancellation.
const TICK: Duration = Duration::from_millis(5);

/// Number of frames in a backtrace: those of the trapping function and its caller.
const BACKTRACE_FRAMES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// Maximum size of the cache of compiled functions, in bytes.
const MAX_FUNCTION_CACHE: u64 = 64 << 20;

/// Limits of the engine and of each program that runs in it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum memory of one program, in bytes. Default 64 MiB.
    pub memory: usize,
    /// Maximum running time of one program, including its host calls. Default 150 s.
    pub time: Duration,
    /// Maximum number of instructions (engine fuel) that one program may use. With `None`, programs
    /// are not metered and run faster.
    pub fuel: Option<u64>,
    /// Maximum number of programs that run concurrently. Additional programs wait. Nested programs
    /// have separate slots: each level of nesting has half as many as the previous one, but at
    /// least one, so that no program waits for a slot held by its parent. Default 128.
    pub instances: u32,
    /// Maximum size of the cache of compiled programs and their sources, in bytes. Default 256 MiB.
    /// In addition, the cache holds at most 4,096 sources and the code of 4,096 modules.
    pub cache: u64,
    /// Limits on one run, across all of its programs.
    pub run: AccountLimits,
    /// Maximum total memory of all runs of the process and of the requests to a server, in bytes.
    /// Default 2 GiB.
    pub process_memory: usize,
    /// Maximum time to wait for a program after its compilation has started. Default 10 s. A
    /// program that passes the preceding cost checks compiles in at most 2 s.
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
    /// Returns the maximum number of programs that run concurrently at a level of nesting.
    pub(crate) fn slots(&self, level: usize) -> u32 {
        (self.instances >> level).max(1)
    }
}

/// Creates the engine and starts its clock, which calls `tick` whenever the epoch advances.
pub(crate) fn engine(
    limits: &Limits,
    tick: impl Fn() + Send + 'static,
) -> wasmtime::Result<Engine> {
    let engine = Engine::new(&engine_config(limits)?)?;
    start(&engine, tick)?;
    Ok(engine)
}

/// Returns the engine's settings. This function is public so that benchmarks can compare the
/// runtime with plain wasmtime under the same settings.
///
/// # Errors
/// If this build of the engine does not support a setting.
pub fn engine_config(limits: &Limits) -> wasmtime::Result<wasmtime::Config> {
    let slots = (0..LEVELS).fold(0u32, |all, level| all.saturating_add(limits.slots(level)));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(slots)
        .total_memories(slots)
        .total_tables(slots)
        .total_stacks(slots)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(10_000)
        .max_memory_size(limits.memory)
        .linear_memory_keep_resident(8 << 10)
        .table_keep_resident(8 << 10);

    let mut config = wasmtime::Config::new();
    config
        .cranelift_opt_level(OptLevel::None)
        .memory_init_cow(false)
        // Only the threads of the pool compile. The compiler must not start threads of its own.
        .parallel_compilation(false)
        // Backtraces walk frame pointers. The system's unwinder would register its tables in one
        // list for the whole process, and scan that list whenever a program is evicted from the
        // cache.
        .native_unwind_info(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        .wasm_backtrace_max_frames(Some(BACKTRACE_FRAMES))
        .consume_fuel(limits.fuel.is_some())
        .max_wasm_stack(256 << 10)
        .async_stack_size(512 << 10)
        .wasm_relaxed_simd(false)
        // Without this, a NaN's bits, and thus a program's results, would depend on the processor.
        .cranelift_nan_canonicalization(true)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config.enable_incremental_compilation(Arc::new(FunctionCache::new()))?;
    Ok(config)
}

/// Returns a hasher that has already consumed the engine's version and its compiler settings.
pub(crate) fn settings_hasher(engine: &Engine) -> blake3::Hasher {
    struct Collect(blake3::Hasher);
    impl Hasher for Collect {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut collect = Collect(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut collect);
    collect.0
}

/// Starts a clock that advances the epoch of an engine while the engine exists, every 5 ms.
///
/// # Errors
/// If the system can start no thread.
pub fn start_clock(engine: &Engine) -> wasmtime::Result<()> {
    start(engine, || {})
}

/// Starts a clock that advances the epoch and calls `tick` while the engine exists.
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

/// A cache of compiled functions and trampolines, keyed by content. Most trampolines of a new
/// program are already in the cache.
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
        FunctionCache(Cache::with_weighter(4_096, MAX_FUNCTION_CACHE, ByBytes))
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
