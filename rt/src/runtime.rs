//! The runtime: from a text to a program, from a program to an outcome.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use wasmtime::{Engine, Linker, Module, Store, UpdateDeadline};
use wattle_lang::cost;

use crate::cache::{Found, Key, Programs};
use crate::engine::{Limits, engine};
use crate::outcome::{Bug, CallFailure, Calls, Exit, Outcome, Trap, TrapKind};
use crate::pool::{Bounds, Pool, caught};
use crate::program::{Compiled, Program};
use crate::run::LEVELS;
use crate::tape::{Before, TapeCursor};
use crate::{
    Account, Authority, Capability, Code, Diagnostic, Failure, Fixed, Function, Grants, Nested, Position, Preview, Run,
    Severity, Signature, Signatures, Unfinished,
};

/// The longest text that is worked on by the thread that asks, in bytes. Longer ones, and ones that cost more to compile than their length
/// says, go to the pool.
const SMALL: usize = 16 << 10;

/// Compiles and runs programs. One per process; cheap to clone and shared by all runs.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    linker: Linker<Run>,
    limits: Limits,
    capabilities: Vec<Capability>,
    functions: Vec<&'static Function>,
    signatures: Signatures,
    programs: Programs,
    /// The account of the process.
    account: Account,
    pool: Pool,
    /// Places for programs at each level of nesting. A program holds one of its own level and waits for ones of the next level only.
    slots: [Semaphore; LEVELS],
    /// Hash of what else decides the outcome of compiling: capability versions and the compiler's settings.
    settings: Key,
}

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program needs capabilities that the run was not granted. Nothing of it was executed.
    #[error("the program needs {}, not granted to this run", list(.0))]
    Denied(Vec<&'static str>),
    /// The guard of the grants refuses the program, and says why. Nothing of it was executed.
    #[error("{0}")]
    Refused(String),
    /// A host function panicked: the program was ended, and nothing of its state is used again.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The host is broken.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A broken host: it *stops* the run, and is never told to a program.
#[derive(Debug, thiserror::Error)]
#[error("the engine failed: {0:#}")]
pub struct EngineError(wasmtime::Error);

impl From<wasmtime::Error> for EngineError {
    fn from(error: wasmtime::Error) -> Self {
        EngineError(error)
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// Makes the engine and links every capability once; what a run may use is decided by its [`Grants`].
    ///
    /// # Errors
    /// Where the engine cannot be made (address space, threads), or two capabilities declare one function.
    pub fn new(capabilities: &[Capability], limits: Limits) -> Result<Runtime, EngineError> {
        let pool = Pool::new(Bounds::new(limits.compile));
        let engine = engine(&limits, pool.tick())?;
        let mut linker = Linker::new(&engine);
        let functions: Vec<&'static Function> = capabilities.iter().flat_map(|c| c.functions).collect();
        for (id, function) in functions.iter().enumerate() {
            (function.link)(&mut linker, id)?;
        }
        let inner = Inner {
            settings: settings(&engine, capabilities),
            engine,
            linker,
            capabilities: capabilities.to_vec(),
            signatures: Signatures::new(functions.iter().map(|f| f.signature)),
            functions,
            programs: Programs::new(limits.cache),
            account: Account::of_process(limits.process_memory),
            pool,
            slots: std::array::from_fn(|level| Semaphore::new(limits.slots(level) as usize)),
            limits,
        };
        Ok(Runtime { inner: Arc::new(inner) })
    }

    /// The capabilities that programs may name, granted or not.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.inner.capabilities
    }

    /// The host functions that programs may name.
    #[must_use]
    pub fn signatures(&self) -> &Signatures {
        &self.inner.signatures
    }

    /// The bounds of each program.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Opens the account of a run, below the one of the process.
    #[must_use]
    pub fn open_account(&self) -> Account {
        self.inner.account.open_run(self.inner.limits.run.clone())
    }

    /// How many compiled programs the cache holds.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.inner.programs.len()
    }

    /// Makes a program of a text, or finds it made. What it can touch is known from then on, and nothing of it has run.
    ///
    /// A text that is large, or costs much to compile, is worked on by the threads of a pool; dropping the future ends the wait.
    ///
    /// # Errors
    /// A diagnostic in the author's own lines, for the author to mend the text by. One with the code `host-busy` is no fault of the
    /// text: the same text may be given again.
    pub async fn prepare(&self, source: &str) -> Result<Program, Arc<Diagnostic>> {
        self.inner.programs.text(source, self.make(source)).await
    }

    async fn make(&self, source: &str) -> Found {
        match self.found(source).await {
            Ok(program) => Found::Known(Ok(program)),
            Err(Refused::Text(why)) => Found::Known(Err(why.into())),
            Err(Refused::Unfinished(Unfinished::Busy)) => Found::Nothing(self.left(source, &Unfinished::Busy).into()),
            Err(Refused::Unfinished(left)) => Found::Known(Err(self.left(source, &left).into())),
        }
    }

    async fn found(&self, source: &str) -> Result<Program, Refused> {
        let inner = &self.inner;
        let assembled = match is_small(source) {
            true => wattle_lang::assemble(source, &inner.signatures),
            false => self.pooled(source, |inner, source| wattle_lang::assemble(source, &inner.signatures)).await?,
        };
        let assembled = Arc::new(assembled.map_err(Refused::Text)?);
        let mut hasher = blake3::Hasher::new();
        let key: Key = hasher.update(&inner.settings).update(assembled.module.as_bytes()).finalize().into();
        let compiled = inner.programs.module(key, self.compiled(source, &assembled)).await?;
        Ok(Program::new(source.to_owned(), assembled.warnings.clone(), compiled))
    }

    /// Compiles a module: at once where that is quick for certain, else on a thread of the pool.
    async fn compiled(&self, source: &str, assembled: &Arc<wattle_lang::Assembled>) -> Result<Arc<Compiled>, Refused> {
        if is_small(source)
            && let Some(compiled) = caught(|| self.inner.compile_quickly(assembled)).map_err(Refused::Unfinished)?
        {
            return Ok(compiled);
        }
        let assembled = Arc::clone(assembled);
        self.pooled(source, move |inner, source| inner.compile(source, &assembled)).await?.map_err(Refused::Text)
    }

    /// Works on a text on a thread of the pool.
    async fn pooled<T: Send + 'static>(
        &self,
        source: &str,
        work: impl FnOnce(&Inner, &str) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let (inner, source) = (Arc::clone(&self.inner), source.to_owned());
        self.inner.pool.run(move || work(&inner, &source)).await.map_err(Refused::Unfinished)
    }

    /// Returns what is wrong with a text, as [`check`](crate::check) does, from a thread of the pool; a text that it takes too long for has
    /// the one finding that says so.
    pub async fn check(&self, source: &str, limit: usize) -> Vec<Diagnostic> {
        let found =
            self.pooled(source, move |inner, source| wattle_lang::check(source, &inner.signatures, limit)).await;
        found.unwrap_or_else(|refused| vec![*self.refused(source, refused)])
    }

    /// Repairs a text, as [`fix`](crate::fix) does, on a thread of the pool; a text that it takes too long for stays as it is.
    pub async fn fix(&self, source: &str) -> Fixed {
        let mended = self.pooled(source, |inner, source| wattle_lang::fix(source, &inner.signatures)).await;
        mended.unwrap_or_else(|refused| {
            let rest = Some(self.refused(source, refused));
            Fixed { source: source.to_owned(), applied: Vec::new(), rest }
        })
    }

    fn refused(&self, source: &str, refused: Refused) -> Box<Diagnostic> {
        match refused {
            Refused::Text(why) => why,
            Refused::Unfinished(left) => self.left(source, &left),
        }
    }

    fn left(&self, source: &str, left: &Unfinished) -> Box<Diagnostic> {
        Box::new(left.diagnostic(source, self.inner.limits.compile))
    }

    /// Where in its author's text each of the program's [uses](crate::Authority::uses) stands, in their order.
    pub async fn use_positions(&self, program: &Program) -> Vec<Option<Position>> {
        let uses = program.authority().uses();
        let offsets: Vec<usize> = uses.iter().map(|one| one.offset.unwrap_or(usize::MAX)).collect();
        let count = offsets.len();
        let locate = move |inner: &Inner, source: &str| wattle_lang::locate_all(source, &inner.signatures, &offsets);
        let spans = match is_small(program.source()) {
            true => locate(&self.inner, program.source()),
            false => self.pooled(program.source(), locate).await.unwrap_or_else(|_| vec![None; count]),
        };
        let known = uses.iter().zip(spans).map(|(one, span)| one.offset.and(span));
        known.map(|span| span.map(|span| Position::of(program.source(), span.start as usize))).collect()
    }

    /// Runs a program with what it was granted, and gives its outcome, whatever it does.
    ///
    /// Dropping the future ends the program within a few milliseconds.
    ///
    /// # Errors
    /// [`RunError::Denied`] where a grant is missing, [`RunError::Refused`] where the grants' guard refuses: then nothing was executed. [`RunError::Engine`] where the host is broken.
    pub async fn run(&self, program: &Program, grants: &Arc<Grants>, args: Vec<String>) -> Result<Outcome, RunError> {
        self.run_within(program, grants, args, self.inner.limits.time).await
    }

    /// As [`run`](Runtime::run), with a time of its own: how long the program may run, at most the runtime's limit.
    ///
    /// # Errors
    /// As [`run`](Runtime::run).
    pub async fn run_within(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
        time: Duration,
    ) -> Result<Outcome, RunError> {
        let reel = grants.tape().cloned().map(TapeCursor::root);
        let account = grants.account().cloned().unwrap_or_else(|| self.open_account());
        self.run_at(program, grants, args, time, (0, reel, account), None).await
    }

    /// As [`run_within`](Runtime::run_within), for a program that another one starts: it ends by the other's deadline at the latest.
    ///
    /// # Errors
    /// As [`run`](Runtime::run).
    pub async fn run_nested(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
        time: Duration,
        place: Nested,
    ) -> Result<Outcome, RunError> {
        self.run_at(program, grants, args, time, (place.level, place.reel, place.account), Some(place.deadline)).await
    }

    async fn run_at(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
        time: Duration,
        (level, reel, account): (usize, Option<TapeCursor>, Account),
        latest: Option<Instant>,
    ) -> Result<Outcome, RunError> {
        let missing = program.missing(grants);
        if !missing.is_empty() {
            return Err(RunError::Denied(missing));
        }
        let opened = match reel.as_ref().map(|reel| reel.open(program.source(), &args)).transpose() {
            Err(halt) => return Ok(Outcome::halted(halt)),
            Ok(Some((_, Some(Before::Stopped(stopped))))) => return Ok(Outcome::stopped(stopped)),
            Ok(Some((_, Some(Before::Refused(why))))) => return Err(RunError::Refused(why)),
            Ok(opened) => reel.clone().zip(opened.map(|(mark, _)| mark)),
        };
        let grants = match grants.guard() {
            None => Arc::clone(grants),
            Some(guard) => {
                let decided = guard.before(Preview::new(self, program, &args, reel.as_ref())).await;
                let decided = decided.map_err(|why| {
                    if let Some((reel, mark)) = opened.as_ref().filter(|(reel, _)| reel.tape.halted().is_none()) {
                        reel.refuse(mark, &why);
                    }
                    RunError::Refused(why)
                })?;
                Arc::new(grants.as_ref().clone().guarded(decided))
            }
        };
        let inner = &self.inner;
        // A full pool is an error, so wait here instead. The semaphore is never closed.
        let _slot = match inner.slots.get(level) {
            Some(slots) => slots.acquire().await.ok(),
            None => None,
        };
        let started = Instant::now();
        let left = latest.map_or(Duration::MAX, |latest| latest.saturating_duration_since(started));
        let time = time.min(inner.limits.time).min(left);
        let place = Nested { level, deadline: started + time, reel, account: account.clone() };
        let run = Run::new(args, grants, inner.limits.memory, place);
        let mut store = Store::new(&inner.engine, run);
        store.limiter(|run| &mut run.memory_limit);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            let run = store.data();
            Ok(if Instant::now() < run.deadline && !run.account().is_out_of_cpu() {
                UpdateDeadline::Yield(1)
            } else {
                UpdateDeadline::Interrupt
            })
        });
        if let Some(fuel) = inner.limits.fuel {
            store.set_fuel(fuel).map_err(EngineError)?;
        }
        let call = account.metered(AssertUnwindSafe(execute(&mut store, program.compiled())).catch_unwind());
        let ended =
            if program.compiled().waits { tokio::time::timeout(time, call).await.ok() } else { Some(call.await) };
        // After a panic the store may be in any state: it is dropped, and only asked which function was under way.
        let ended = ended.transpose().map_err(|payload| inner.bug(store.data(), payload))?;
        let duration = started.elapsed();
        let halt = opened.as_ref().and_then(|(reel, _)| reel.tape.halted());
        let exit = match (halt, ended) {
            (Some(halt), _) => Exit::Trapped(Trap::halted(halt)),
            (None, None) => Exit::Trapped(inner.overdue(&store, program, time)),
            (None, Some(Ok(code))) => Exit::Returned(Code(code)),
            (None, Some(Err(error))) => Exit::Trapped(inner.trapped(&store, program, error, time)?),
        };
        let halted = matches!(&exit, Exit::Trapped(trap) if trap.kind == TrapKind::Halted);
        let outcome = inner.outcome(store, program, exit, duration);
        if let Some((reel, mark)) = opened.filter(|_| !halted) {
            reel.close(&mark, &outcome);
        }
        Ok(outcome)
    }
}

/// Instantiates the program and calls it.
async fn execute(store: &mut Store<Run>, compiled: &Compiled) -> wasmtime::Result<i32> {
    let instance = compiled.instance.instantiate_async(&mut *store).await?;
    let missing = |what: &str| wasmtime::Error::msg(format!("the module has no {what}"));
    let memory = instance.get_module_export(&mut *store, &compiled.memory).and_then(wasmtime::Extern::into_memory);
    store.data_mut().memory = Some(memory.ok_or_else(|| missing("memory"))?);
    store.data_mut().heap = compiled.heap;
    let run = instance.get_module_export(&mut *store, &compiled.run).and_then(wasmtime::Extern::into_func);
    run.ok_or_else(|| missing("function `run`"))?.typed::<(), i32>(&*store)?.call_async(&mut *store, ()).await
}

/// Why there is no program of a text.
enum Refused {
    /// The text is none.
    Text(Box<Diagnostic>),
    /// It was not found out.
    Unfinished(Unfinished),
}

/// If true, the text may be worked on by the thread that asks. One that is too long is refused for that alone.
fn is_small(source: &str) -> bool {
    source.len() <= SMALL || wattle_lang::is_too_long(source)
}

impl Inner {
    /// Encodes, compiles and links a module.
    fn compile(&self, source: &str, assembled: &wattle_lang::Assembled) -> Result<Arc<Compiled>, Box<Diagnostic>> {
        let compiled = || {
            let binary = assembled.encode()?;
            cost::of(&binary).map_err(|_| wasmtime::Error::msg("it costs too much to compile"))?;
            self.link(assembled, &binary)
        };
        compiled().map_err(|refused| self.explain(source, &refused))
    }

    /// Compiles a module where that takes some milliseconds at most; `None` where it may take longer, or fails.
    fn compile_quickly(&self, assembled: &wattle_lang::Assembled) -> Option<Arc<Compiled>> {
        let binary = assembled.encode().ok()?;
        cost::of(&binary).ok().filter(cost::Cost::is_quick)?;
        self.link(assembled, &binary).ok()
    }

    /// Compiles and links a binary.
    fn link(&self, assembled: &wattle_lang::Assembled, binary: &[u8]) -> wasmtime::Result<Arc<Compiled>> {
        let module = Module::from_binary(&self.engine, binary)?;
        let export = |name| {
            module
                .get_export_index(name)
                .ok_or_else(|| wasmtime::Error::msg(format!("the module has no export `{name}`")))
        };
        let (run, memory) = (export("run")?, export("mem.tape")?);
        let instance = self.linker.instantiate_pre(&module)?;
        let mut capabilities: Vec<&'static str> = assembled.imports.iter().map(|import| import.module).collect();
        capabilities.sort_unstable();
        capabilities.dedup();
        Ok(Arc::new(Compiled {
            instance,
            run,
            memory,
            heap: assembled.heap_base,
            capabilities,
            waits: assembled.imports.iter().any(|import| self.waits(import)),
            authority: Authority::of(binary, &assembled.imports, assembled.heap_base),
            imports: assembled.imports.clone(),
        }))
    }

    fn waits(&self, import: &Signature) -> bool {
        self.functions.iter().any(|f| f.waits && f.signature == *import)
    }

    /// Why a module could not be made, in the author's lines; what only the engine knows stands at the text's beginning.
    fn explain(&self, source: &str, refused: &wasmtime::Error) -> Box<Diagnostic> {
        wattle_lang::explain(source, &self.signatures).unwrap_or_else(|| {
            let message = format!("the engine refuses the module: {}", refused.root_cause());
            Box::new(Diagnostic::new(source, Severity::Error, "refused-module", 0..0, message, None))
        })
    }

    /// A panic of a host function as what ends the run. One of a program that this one started is handed on as it is.
    fn bug(&self, run: &Run, payload: Box<dyn Any + Send>) -> Bug {
        match payload.downcast::<Bug>() {
            Ok(nested) => *nested,
            Err(payload) => {
                Bug::new(run.last.map(|function| self.name(function)), &crate::pool::words(payload.as_ref()))
            }
        }
    }

    fn name(&self, function: usize) -> &'static str {
        self.functions.get(function).map_or("", |f| f.name)
    }

    /// The trap of a program whose time ran out while a host call waited.
    fn overdue(&self, store: &Store<Run>, program: &Program, time: Duration) -> Trap {
        let waiting = store.data().waiting;
        let message = match waiting {
            Some((function, _)) => format!("{} in `{}`", out_of_time(time), self.name(function)),
            None => out_of_time(time),
        };
        let position = program.locate(&self.signatures, waiting.and_then(|(_, offset)| offset));
        Trap { kind: TrapKind::Time, message, position }
    }

    /// The trap that an error of the engine stands for; an error that is none is the host's.
    fn trapped(
        &self,
        store: &Store<Run>,
        program: &Program,
        error: wasmtime::Error,
        time: Duration,
    ) -> Result<Trap, EngineError> {
        let (kind, message) = if let Some(failure) = error.downcast_ref::<Failure>() {
            let function = store.data().failed.as_ref().map_or("", |f| self.name(f.function));
            (TrapKind::Host(failure.code), format!("`{function}` failed: {failure}"))
        } else if let Some(wasmtime::Trap::Interrupt) = error.downcast_ref()
            && store.data().account().is_out_of_cpu()
        {
            (TrapKind::Time, store.data().account().out_of_cpu())
        } else if let Some(trap) = error.downcast_ref::<wasmtime::Trap>() {
            describe(*trap, time)
        } else if let Some(failure) = &store.data().memory_limit.refused {
            (TrapKind::Memory, failure.reason.clone())
        } else {
            return Err(EngineError(error));
        };
        // A stack that overflows does so before the first instruction of a function: then the call that led there is the place.
        let frames = error.downcast_ref::<wasmtime::WasmBacktrace>().map_or(&[][..], |trace| trace.frames());
        let position = frames.iter().take(2).find_map(|frame| program.locate(&self.signatures, frame.module_offset()));
        Ok(Trap { kind, message, position })
    }

    fn outcome(&self, store: Store<Run>, program: &Program, exit: Exit, duration: Duration) -> Outcome {
        let mut store = store;
        let memory_bytes = store.data().memory.map_or(0, |memory| memory.data_size(&store) as u64);
        let own = self.limits.fuel.map(|given| given.saturating_sub(store.get_fuel().unwrap_or(0)));
        let run = store.data_mut();
        let fuel = own.map(|own| own.saturating_add(run.fuel_of_others));
        let explains = |code: Code| match &exit {
            Exit::Returned(returned) => *returned == code,
            Exit::Trapped(trap) => matches!(trap.kind, TrapKind::Host(_)),
        };
        let failure = run.failed.take().filter(|f| explains(f.failure.code)).map(|failed| CallFailure {
            function: self.name(failed.function),
            position: program.locate(&self.signatures, failed.offset),
            failure: failed.failure,
        });
        let mut calls: Vec<Calls> = run
            .calls
            .iter()
            .map(|c| Calls { function: self.name(c.function), calls: c.calls, failed: c.failed })
            .collect();
        for other in run.others.drain(..) {
            match calls.iter_mut().find(|own| own.function == other.function) {
                Some(own) => (own.calls, own.failed) = (own.calls + other.calls, own.failed + other.failed),
                None => calls.push(other),
            }
        }
        let answer = run.take_answer().filter(|_| exit == Exit::Returned(Code::SUCCESS));
        let (results, log) = (run.take_results(), run.take_log());
        Outcome { calls, results, answer, log, exit, failure, fuel, memory_bytes, duration }
    }
}

fn out_of_time(time: Duration) -> String {
    format!("the program ran out of its {} ms", time.as_millis())
}

/// What a trap of the engine means to the author.
fn describe(trap: wasmtime::Trap, time: Duration) -> (TrapKind, String) {
    use wasmtime::Trap as T;
    let (kind, message) = match trap {
        T::StackOverflow => (TrapKind::Stack, "calls are nested too deep; does a function call itself without an end?"),
        T::MemoryOutOfBounds | T::HeapMisaligned => {
            (TrapKind::Memory, "access outside the memory; check the address and the length")
        }
        T::TableOutOfBounds => (TrapKind::Memory, "access outside the table"),
        T::IndirectCallToNull => (TrapKind::Call, "indirect call of an empty table entry"),
        T::BadSignature => (TrapKind::Call, "indirect call of a function of another type"),
        T::IntegerOverflow => (TrapKind::Arithmetic, "integer overflow"),
        T::IntegerDivisionByZero => (TrapKind::Arithmetic, "integer division by zero"),
        T::BadConversionToInteger => (TrapKind::Arithmetic, "the float has no integer value in that range"),
        T::UnreachableCodeReached => (TrapKind::Unreachable, "`unreachable` was reached"),
        T::Interrupt => return (TrapKind::Time, format!("{}; does a loop never end?", out_of_time(time))),
        T::OutOfFuel => (TrapKind::Time, "the program used up its fuel; does a loop never end?"),
        other => return (TrapKind::Call, other.to_string()),
    };
    (kind, message.to_owned())
}

/// Hashes what decides the outcome of compiling beside the module's text.
fn settings(engine: &Engine, capabilities: &[Capability]) -> Key {
    use std::hash::{Hash, Hasher};
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
    for capability in capabilities {
        (capability.name, capability.version).hash(&mut collect);
    }
    collect.0.finalize().into()
}
