//! The engine of the commands, and the module compiled for it: once per process, and kept on disk for the next one.

use std::path::Path;
use std::time::Duration;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, OptLevel, PoolingAllocationConfig,
};
use wattle_rt::CompiledFolder;

use super::ended::ToolboxError;
use super::wasi::{self, Stage};

/// How often the epoch advances: the grain of what a stage is held to.
const TICK: Duration = Duration::from_millis(5);
/// The stages that run at once in the process.
const STAGES: u32 = 1000;
/// The most memory that any stage may have.
pub(super) const MEMORY_MOST: usize = 1 << 30;
/// The stack of a stage's own calls.
const STACK: usize = 1 << 20;
/// The stack of the thread that a stage runs on: its own calls, and those of the host functions above them.
pub(super) const THREAD_STACK: usize = STACK + (3 << 20);

/// The module, ready to be started.
pub(super) struct Compiled {
    pub(super) engine: Engine,
    pub(super) instance: InstancePre<Stage>,
}

impl Compiled {
    /// Compiles the module, or takes it from the cache: some seconds, or some milliseconds, on the thread that calls.
    pub(super) fn new(wasm: &[u8], cache: Option<&Path>) -> Result<Compiled, ToolboxError> {
        let failed = |error: wasmtime::Error| ToolboxError(format!("{error:#}"));
        let held = cache.and_then(|folder| CompiledFolder::lock(folder, "commands").ok());
        let engine = Engine::new(&config(held.as_ref()).map_err(failed)?).map_err(failed)?;
        let module = Module::new(&engine, wasm).map_err(failed)?;
        drop(held);
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker).map_err(failed)?;
        let instance = linker.instantiate_pre(&module).map_err(failed)?;
        start_clock(&engine)?;
        Ok(Compiled { engine, instance })
    }
}

fn config(cache: Option<&CompiledFolder>) -> wasmtime::Result<Config> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(STAGES)
        .total_memories(STAGES)
        .total_tables(STAGES)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(100_000)
        .max_core_instance_size(8 << 20)
        .max_memory_size(MEMORY_MOST)
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(64 << 10);
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .native_unwind_info(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    if let Some(folder) = cache {
        folder.configure(&mut config)?;
    }
    Ok(config)
}

/// Advances the epoch for as long as the engine lives.
fn start_clock(engine: &Engine) -> Result<(), ToolboxError> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    let started = std::thread::Builder::new().name("wattle-commands".to_owned()).spawn(tick);
    started.map(drop).map_err(|cause| ToolboxError(format!("no thread for the clock: {cause}")))
}
