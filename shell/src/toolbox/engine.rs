//! The wasmtime engine that runs the commands, and their compiled module. The compiled module is
//! cached on disk, so that later processes load it instead of compiling it again.

use std::path::Path;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, OptLevel,
    PoolingAllocationConfig,
};
use wattle_rt::{HostModule, start_clock};

use super::ToolboxError;
use super::threads::Threads;
use super::wasi::{self, Guest};

/// Maximum number of stages that run in the process at the same time.
const STAGES: u32 = 1000;
/// Maximum memory of any stage, in bytes.
pub(super) const MAX_MEMORY: usize = 1 << 30;
/// Stack size of a stage's WebAssembly calls, in bytes.
const STACK: usize = 1 << 20;
/// Stack size of a stage's thread, in bytes. The stack holds the WebAssembly calls and the host
/// functions that they call.
pub(super) const THREAD_STACK: usize = STACK + (3 << 20);

/// The commands' module, compiled and linked.
pub(super) struct CompiledModule {
    pub(super) engine: Engine,
    pub(super) instance: InstancePre<Guest>,
    pub(super) threads: Threads,
}

impl CompiledModule {
    /// Compiles the module that `binary` returns, or loads it from the cache under the key
    /// `identity`. Blocks the calling thread for a few seconds, or for a few milliseconds if the
    /// module is cached.
    pub(super) fn new(
        identity: &[u8],
        binary: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
        cache: Option<&Path>,
    ) -> Result<CompiledModule, ToolboxError> {
        let failed = |error: wasmtime::Error| ToolboxError(format!("{error:#}"));
        let engine = Engine::new(&config()).map_err(failed)?;
        let module = HostModule { name: "commands", identity };
        let module = module.load(&engine, cache, binary).map_err(failed)?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker).map_err(failed)?;
        let instance = linker.instantiate_pre(&module).map_err(failed)?;
        start_clock(&engine).map_err(failed)?;
        Ok(CompiledModule { engine, instance, threads: Threads::default() })
    }
}

fn config() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(STAGES)
        .total_memories(STAGES)
        .total_tables(STAGES)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .table_elements(100_000)
        .max_core_instance_size(8 << 20)
        .max_memory_size(MAX_MEMORY)
        .linear_memory_keep_resident(64 << 10)
        .table_keep_resident(64 << 10);
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .native_unwind_info(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        // `proc_exit` ends each command with an error. Capturing its backtrace would take longer
        // than a short command runs.
        .wasm_backtrace_max_frames(None)
        .max_wasm_stack(STACK)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}
