//! Compiled engines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine, OptLevel};
use wattle_machine::Setup;
use wattle_rt::{Account, EngineError, HostModule, start_clock};

use crate::guest::Guest;
use crate::instance::Instance;
use crate::{wasi, wit};

/// Maximum size of an engine's binary, in bytes.
pub const MAX_BINARY: usize = 32 << 20;

/// A compiled engine. Clones share the machine code.
#[derive(Clone)]
pub struct Component(Arc<Inner>);

struct Inner {
    engine: Engine,
    linked: wit::EnginePre<Guest>,
    hash: String,
    bounds: Bounds,
}

/// Limits on each instance of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum memory, in bytes. Default 256 MiB.
    pub memory: usize,
    /// Maximum processor time of one turn. Default 10 s.
    pub turn: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { memory: 256 << 20, turn: Duration::from_secs(10) }
    }
}

/// The facts about a run that its engine may know. They must be the same each time the run is
/// resumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// The initial configuration of the loop.
    pub setup: Setup,
    /// The agent's name.
    pub agent: String,
    /// The model's name.
    pub model: String,
    /// The names of the capabilities that programs may use.
    pub granted: Vec<String>,
    /// The start time of the run, in milliseconds since 1970.
    pub created: u64,
}

/// The reason why an engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The binary is too large.
    #[error("it has {} MiB, and an engine has at most {} MiB", .0 >> 20, MAX_BINARY >> 20)]
    TooLarge(usize),
    /// The binary is not a component of the world `engine`.
    #[error(
        "it is not a component of the world `wattle:engine/engine`: {0}\nhint: `wattle run --engine` \
         needs a component built against engine.wit, see docs/engine.md"
    )]
    Invalid(String),
    /// The host failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Component {
    /// Reads the compiled form of an engine from the folder `cache`, or compiles its binary and
    /// stores the result there. Compiling blocks the calling thread for about a second per megabyte.
    ///
    /// # Errors
    /// If the binary is not an engine.
    pub fn load(
        binary: &[u8],
        cache: Option<&Path>,
        bounds: Bounds,
    ) -> Result<Component, ComponentError> {
        if binary.len() > MAX_BINARY {
            return Err(ComponentError::TooLarge(binary.len()));
        }
        let engine = Engine::new(&config()).map_err(EngineError::from)?;
        start_clock(&engine).map_err(EngineError::from)?;
        let invalid = |why: wasmtime::Error| ComponentError::Invalid(format!("{why:#}"));
        let module = HostModule { name: "engine", identity: binary };
        let component =
            module.load_component(&engine, cache, || Ok(binary.to_vec())).map_err(invalid)?;
        let mut linker = Linker::new(&engine);
        wit::Engine::add_to_linker::<Guest, HasSelf<Guest>>(&mut linker, |guest| guest)
            .map_err(EngineError::from)?;
        wasi::add_to_linker(&mut linker, &component).map_err(invalid)?;
        linker.define_unknown_imports_as_traps(&component).map_err(invalid)?;
        let linked = linker.instantiate_pre(&component).and_then(wit::EnginePre::new);
        let linked = linked.map_err(invalid)?;
        let hash = blake3::hash(binary).to_hex().to_string();
        Ok(Component(Arc::new(Inner { engine, linked, hash, bounds })))
    }

    /// Returns the hash of the binary, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// Creates an instance for a run, or for a part of a run that is resumed. It begins with the
    /// first input. Its memory and its processor time are charged to the account.
    pub fn start(&self, facts: RunFacts, account: Account) -> Instance {
        Instance::new(self.clone(), facts, account)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn linked(&self) -> &wit::EnginePre<Guest> {
        &self.0.linked
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.0.bounds
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .native_unwind_info(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(1 << 20)
        .async_stack_size(2 << 20)
        .wasm_relaxed_simd(false)
        // Without this, a NaN's bits, and thus the turns of a run, would depend on the processor.
        .cranelift_nan_canonicalization(true)
        .wasm_memory64(false);
    config
}
