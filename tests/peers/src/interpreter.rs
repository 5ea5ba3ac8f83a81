//! The wasmi interpreter, which runs the module that Wattle generates from a program.

use std::time::{Duration, Instant};

use wasmi::{Caller, Engine, Linker, Memory, Store};
use wattle_rt::Signatures;

use crate::Result;
use crate::bare::{Module, succeeded};
use crate::host::{Host, Space, link_all};
use crate::jobs::Job;
use crate::sample::{Peer, kib_each};
use crate::wattle;

struct State {
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

/// The stages included in a job's runs.
#[derive(Clone, Copy)]
pub enum Path {
    /// A run of a new module, including parsing, translation and linking.
    Cold,
    /// A run of a translated module, including linking.
    Warm,
}

/// A job that wasmi runs.
pub struct Wasmi {
    engine: Engine,
    linker: Linker<State>,
    path: Path,
    /// The signatures of the host functions, which are needed to generate modules.
    signatures: Signatures,
    text: String,
    module: Module,
    translated: wasmi::Module,
    args: Vec<String>,
    runs: u32,
}

impl Wasmi {
    /// Prepares a job.
    ///
    /// # Errors
    /// If the job's module cannot be translated.
    pub fn new(path: Path, job: &Job) -> Result<Wasmi> {
        let engine = Engine::default();
        let mut linker: Linker<State> = Linker::new(&engine);
        link_all!(linker, Caller<'_, State>);
        let signatures = wattle::signatures();
        let text = wattle::program(job)?;
        let module = wattle::module(&signatures, &text)?;
        let translated = translate(&engine, &module)?;
        let args = job.args();
        Ok(Wasmi { engine, linker, path, signatures, text, module, translated, args, runs: 0 })
    }

    fn execute(
        &self,
        module: &wasmi::Module,
        heap: u32,
        args: Vec<String>,
    ) -> Result<Store<State>> {
        let state = State { memory: None, host: Host::new(heap, args) };
        let mut store = Store::new(&self.engine, state);
        let instance = self.linker.instantiate_and_start(&mut store, module)?;
        store.data_mut().memory = instance.get_memory(&store, "mem.tape");
        let run = instance.get_typed_func::<(), i32>(&store, "run")?;
        succeeded(run.call(&mut store, ())?)?;
        Ok(store)
    }
}

fn translate(engine: &Engine, module: &Module) -> Result<wasmi::Module> {
    Ok(wasmi::Module::new(engine, wat::parse_str(&module.text)?)?)
}

impl Peer for Wasmi {
    async fn run(&mut self) -> Result<(Duration, String)> {
        self.runs += 1;
        let args = self.args.clone();
        // The time includes the end of the instance, which leaves only the host's results.
        let (host, time) = match self.path {
            Path::Cold => {
                let text = wattle::unseen(&self.text, self.runs);
                let module = wattle::module(&self.signatures, &text)?;
                let started = Instant::now();
                let translated = translate(&self.engine, &module)?;
                let store = self.execute(&translated, module.heap, args)?;
                (store.into_data().host, started.elapsed())
            }
            Path::Warm => {
                let started = Instant::now();
                let store = self.execute(&self.translated, self.module.heap, args)?;
                (store.into_data().host, started.elapsed())
            }
        };
        Ok((time, host.text()))
    }

    /// Keeps instances alive after their programs have ended. Returns their average memory use.
    async fn live(&mut self, count: usize) -> Result<Option<f64>> {
        let one = || self.execute(&self.translated, self.module.heap, self.args.clone());
        kib_each(count, one).map(Some)
    }
}
