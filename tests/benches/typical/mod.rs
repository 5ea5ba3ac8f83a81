//! The programs that the benches `program` and `gate` run, and the two sides that run them: Wattle,
//! and bare wasmtime with the module that Wattle generates from the program.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot run fails by a panic"
)]
#![allow(dead_code, reason = "each of the two benches uses a part")]

use std::hint::black_box;
use std::sync::Arc;

use wasmtime::{
    Caller, Config, Engine, InstancePre, Linker, Memory, Module, Store, UpdateDeadline,
};
use wattle_rt::{AssembledModule, Grants, Limits, Runtime};

/// A program of typical size: three host calls, a loop, a helper and string literals. Its argument
/// is a name.
pub(crate) const PROGRAM: &str = include_str!("../program.wat");

/// A program that makes [`CALLS`] host calls, each with a string argument.
pub(crate) const CALLING: &str = include_str!("../host_calls.wat");

/// A program that parses its argument as JSON.
pub(crate) const PARSING: &str = "(out (val.len (val.parse (arg 0))))";

/// The argument of the other programs.
const ARGUMENT: &str = "world";

/// Number of host calls in [`CALLING`].
pub(crate) const CALLS: u32 = 10_000;

/// The number that makes the first program of [`unseen`] unique.
pub(crate) const UNIQUE: u32 = 1_000_000;

/// Returns [`PROGRAM`] with code that differs for each number, so that it is not cached.
pub(crate) fn unseen(number: u32) -> String {
    format!("(drop (i32.const {}))\n{PROGRAM}", UNIQUE + number)
}

pub(crate) fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A runtime with grants for all pure capabilities, and an account, as the programs of a run have.
pub(crate) struct Wattle {
    runtime: Runtime,
    grants: Arc<Grants>,
}

impl Wattle {
    /// Creates a runtime that runs at most `instances` programs at the same time.
    pub(crate) fn new(instances: u32) -> Wattle {
        let limits = Limits { instances, ..Limits::default() };
        let runtime = Runtime::new(wattle_capability::ALL, limits).unwrap();
        let grants = wattle_capability::pure_grants().charged_to(runtime.open_account());
        Wattle { runtime, grants: Arc::new(grants) }
    }

    /// Runs a program, which is compiled if it is not cached.
    pub(crate) async fn run(&self, text: &str) {
        self.run_with(text, ARGUMENT).await;
    }

    /// Runs a program with an argument.
    pub(crate) async fn run_with(&self, text: &str, arg: &str) {
        let program = self.runtime.prepare(text).await.unwrap();
        let args = vec![arg.to_owned()];
        let outcome = self.runtime.run(&program, &self.grants, args).await.unwrap();
        assert!(outcome.success());
        black_box(outcome.results);
    }

    /// Generates the module of a program.
    pub(crate) fn assemble(&self, text: &str) -> AssembledModule {
        wattle_rt::assemble(text, self.runtime.signatures()).unwrap()
    }
}

/// Returns the arguments of one run of a program.
fn args() -> Vec<String> {
    vec![ARGUMENT.to_owned()]
}

/// The state that the module's imports need.
pub(crate) struct State {
    args: Vec<String>,
    memory: Option<Memory>,
    /// The first free address.
    free: u32,
    results: Vec<Vec<u8>>,
}

/// A compiled module.
pub(crate) struct Compiled {
    instance: InstancePre<State>,
    /// The first address after the static data.
    heap: u32,
}

/// An engine and the host functions that the programs import. They check nothing.
pub(crate) struct Bare {
    engine: Engine,
    linker: Linker<State>,
}

impl Bare {
    /// Creates an engine with Wattle's settings. It can run up to `instances` programs at the same
    /// time.
    pub(crate) fn same_settings(instances: u32) -> Bare {
        let limits = Limits { instances, ..Limits::default() };
        Bare::with(&wattle_rt::engine_config(&limits).unwrap())
    }

    /// Creates an engine with wasmtime's default settings.
    pub(crate) fn default_settings() -> Bare {
        Bare::with(&Config::new())
    }

    fn with(config: &Config) -> Bare {
        let engine = Engine::new(config).unwrap();
        let mut linker: Linker<State> = Linker::new(&engine);
        linker
            .func_wrap("sys", "argv", |mut caller: Caller<'_, State>, index: i32| {
                let arg = std::mem::take(&mut caller.data_mut().args[index as usize]);
                (put(&mut caller, arg.as_bytes()), 0i32)
            })
            .unwrap();
        linker
            .func_wrap("str", "cat", |mut caller: Caller<'_, State>, a: i32, b: i32| {
                let memory = caller.data().memory.unwrap().data(&caller);
                let joined = [text(memory, a), text(memory, b)].concat();
                (put(&mut caller, &joined), 0i32)
            })
            .unwrap();
        linker
            .func_wrap("str", "len", |caller: Caller<'_, State>, s: i32| {
                text(caller.data().memory.unwrap().data(&caller), s).len() as i32
            })
            .unwrap();
        linker
            .func_wrap("sys", "resv", |mut caller: Caller<'_, State>, s: i32| {
                let result = text(caller.data().memory.unwrap().data(&caller), s).to_vec();
                caller.data_mut().results.push(result);
            })
            .unwrap();
        Bare { engine, linker }
    }

    /// Parses, compiles and links a module.
    pub(crate) fn compile(&self, module: &AssembledModule) -> Compiled {
        let binary = wat::parse_str(&module.module).unwrap();
        let instance = Module::from_binary(&self.engine, &binary).unwrap();
        let instance = self.linker.instantiate_pre(&instance).unwrap();
        Compiled { instance, heap: module.heap_base }
    }

    fn store(&self, heap: u32) -> Store<State> {
        let state = State { args: args(), memory: None, free: heap, results: Vec::new() };
        Store::new(&self.engine, state)
    }

    /// Runs a module on a separate stack, as Wattle does.
    pub(crate) async fn run(&self, compiled: &Compiled) {
        let mut store = self.store(compiled.heap);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        let instance = compiled.instance.instantiate_async(&mut store).await.unwrap();
        store.data_mut().memory = instance.get_memory(&mut store, "mem.tape");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
        assert_eq!(run.call_async(&mut store, ()).await.unwrap(), 0);
        black_box(store.into_data().results);
    }

    /// Runs a module on the caller's stack, without a deadline.
    pub(crate) fn run_directly(&self, compiled: &Compiled) {
        let mut store = self.store(compiled.heap);
        let instance = compiled.instance.instantiate(&mut store).unwrap();
        store.data_mut().memory = instance.get_memory(&mut store, "mem.tape");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, ()).unwrap(), 0);
        black_box(store.into_data().results);
    }
}

fn text(memory: &[u8], pointer: i32) -> &[u8] {
    let at = pointer as usize;
    let length = u32::from_le_bytes(memory[at..at + 4].try_into().unwrap()) as usize;
    &memory[at + 4..at + 4 + length]
}

fn put(caller: &mut Caller<'_, State>, bytes: &[u8]) -> i32 {
    let memory = caller.data().memory.unwrap();
    let at = caller.data().free.next_multiple_of(8);
    caller.data_mut().free = at + 4 + bytes.len() as u32;
    memory.write(&mut *caller, at as usize, &(bytes.len() as u32).to_le_bytes()).unwrap();
    memory.write(&mut *caller, at as usize + 4, bytes).unwrap();
    at as i32
}
