//! Bare wasmtime, which runs the module that Wattle generates from a program.

use std::time::{Duration, Instant};

use wasmtime::{Caller, Config, Engine, InstancePre, Linker, Memory, Store, UpdateDeadline};
use wattle_rt::{Limits, Signatures, engine_config};

use crate::Result;
use crate::host::{Host, Space, link_all};
use crate::jobs::Job;
use crate::sample::{Peer, kib_each};
use crate::wattle;

/// A module in the text format.
pub struct Module {
    /// The module's text.
    pub text: String,
    /// The first address after the static data.
    pub heap: u32,
}

/// The state of a run: the program's memory and the host's data.
pub struct State {
    memory: Option<Memory>,
    host: Host,
}

impl Space for Caller<'_, State> {
    fn split(&mut self) -> (&mut [u8], &mut Host) {
        match self.data().memory {
            Some(memory) => {
                let (bytes, state) = memory.data_and_store_mut(self);
                (bytes, &mut state.host)
            }
            None => (&mut [], &mut self.data_mut().host),
        }
    }

    fn grow(&mut self, pages: u64) {
        if let Some(memory) = self.data().memory {
            // If the memory cannot grow, the following write panics.
            let _ = memory.grow(&mut *self, pages);
        }
    }
}

/// An engine and a linker with the host functions.
pub struct Bare {
    engine: Engine,
    linker: Linker<State>,
}

impl Bare {
    /// Creates an engine with the same settings as Wattle's.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub fn same_settings() -> Result<Bare> {
        Bare::with(&engine_config(&Limits::default())?)
    }

    /// Creates an engine with wasmtime's default settings.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub fn default_settings() -> Result<Bare> {
        Bare::with(&Config::new())
    }

    fn with(config: &Config) -> Result<Bare> {
        let engine = Engine::new(config)?;
        let mut linker: Linker<State> = Linker::new(&engine);
        link_all!(linker, Caller<'_, State>);
        Ok(Bare { engine, linker })
    }

    /// Parses, compiles and links a module.
    ///
    /// # Errors
    /// If the module is invalid or imports an unknown function.
    pub fn compile(&self, module: &Module) -> Result<InstancePre<State>> {
        let binary = wat::parse_str(&module.text)?;
        let module = wasmtime::Module::from_binary(&self.engine, &binary)?;
        Ok(self.linker.instantiate_pre(&module)?)
    }

    fn store(&self, heap: u32, args: Vec<String>) -> Store<State> {
        let host = Host::new(heap, args);
        Store::new(&self.engine, State { memory: None, host })
    }

    /// Runs a module on a separate stack, as Wattle does. Returns the store.
    ///
    /// # Errors
    /// If the program fails.
    pub async fn run(
        &self,
        instance: &InstancePre<State>,
        heap: u32,
        args: Vec<String>,
    ) -> Result<Store<State>> {
        let mut store = self.store(heap, args);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        let instance = instance.instantiate_async(&mut store).await?;
        store.data_mut().memory = instance.get_memory(&mut store, "mem.tape");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run")?;
        succeeded(run.call_async(&mut store, ()).await?)?;
        Ok(store)
    }

    /// Runs a module on the caller's stack. Returns the store.
    ///
    /// # Errors
    /// If the program fails.
    pub fn run_directly(
        &self,
        instance: &InstancePre<State>,
        heap: u32,
        args: Vec<String>,
    ) -> Result<Store<State>> {
        let mut store = self.store(heap, args);
        let instance = instance.instantiate(&mut store)?;
        store.data_mut().memory = instance.get_memory(&mut store, "mem.tape");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run")?;
        succeeded(run.call(&mut store, ())?)?;
        Ok(store)
    }
}

/// Checks that the exit code of a program is 0.
pub(crate) fn succeeded(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(format!("the program returned {code}").into()) }
}

/// The stages included in a job's runs, and the engine's settings.
#[derive(Clone, Copy)]
pub enum Path {
    /// A run of a new module with Wattle's settings, including parsing, compiling and linking.
    Cold,
    /// A run of a compiled module with Wattle's settings, including instantiation.
    Warm,
    /// A run of a new module with the engine's default settings, including parsing, compiling and
    /// linking.
    Naive,
}

/// A job that wasmtime runs without Wattle.
pub struct Wasmtime {
    bare: Bare,
    path: Path,
    /// The signatures of the host functions, which are needed to generate modules.
    signatures: Signatures,
    text: String,
    module: Module,
    compiled: InstancePre<State>,
    args: Vec<String>,
    runs: u32,
}

impl Wasmtime {
    /// Prepares a job.
    ///
    /// # Errors
    /// If the engine cannot be created, or the job's module cannot be compiled.
    pub fn new(path: Path, job: &Job) -> Result<Wasmtime> {
        let bare = match path {
            Path::Naive => Bare::default_settings()?,
            Path::Cold | Path::Warm => Bare::same_settings()?,
        };
        let signatures = wattle::signatures();
        let text = wattle::program(job)?;
        let module = wattle::module(&signatures, &text)?;
        let compiled = bare.compile(&module)?;
        Ok(Wasmtime { bare, path, signatures, text, module, compiled, args: job.args(), runs: 0 })
    }
}

impl Peer for Wasmtime {
    async fn run(&mut self) -> Result<(Duration, String)> {
        self.runs += 1;
        let (bare, args) = (&self.bare, self.args.clone());
        let new = || wattle::module(&self.signatures, &wattle::unseen(&self.text, self.runs));
        // The time includes the end of the instance, which leaves only the host's results.
        let (host, time) = match self.path {
            Path::Cold => {
                let module = new()?;
                let started = Instant::now();
                let compiled = bare.compile(&module)?;
                let store = bare.run(&compiled, module.heap, args).await?;
                (store.into_data().host, started.elapsed())
            }
            Path::Warm => {
                let started = Instant::now();
                let store = bare.run(&self.compiled, self.module.heap, args).await?;
                (store.into_data().host, started.elapsed())
            }
            Path::Naive => {
                let module = new()?;
                let started = Instant::now();
                let compiled = bare.compile(&module)?;
                let store = bare.run_directly(&compiled, module.heap, args)?;
                (store.into_data().host, started.elapsed())
            }
        };
        Ok((time, host.text()))
    }

    /// Keeps instances alive after their programs have ended. Returns their average memory use.
    async fn live(&mut self, count: usize) -> Result<Option<f64>> {
        if matches!(self.path, Path::Naive) {
            let one =
                || self.bare.run_directly(&self.compiled, self.module.heap, self.args.clone());
            return kib_each(count, one).map(Some);
        }
        let run = || self.bare.run(&self.compiled, self.module.heap, self.args.clone());
        // The programs do not wait, so each run is ready at the first poll.
        kib_each(count, || futures_util::FutureExt::now_or_never(run()).ok_or("a program waits")?)
            .map(Some)
    }
}
