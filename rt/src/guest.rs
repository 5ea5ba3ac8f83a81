//! Guests: modules that come with the host and run in a sandbox of their own on behalf of a host function, because the work could
//! take any time and any memory.
//!
//! A guest imports nothing. It exports its memory and
//!
//! ```text
//! reserve (bytes) → address                the host writes the input there: head, then body
//! answer (bytes of head, seconds f64) → status     seconds since 1970: a guest has no clock of its own
//! output () → address, output_len () → bytes       what it says with that status
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use wasmtime::{Engine, InstancePre, Linker, Module, ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::account::timed;
use crate::engine::start_clock;
use crate::{Account, CompiledFolder, EngineError, Failure};

/// Maximum number of elements of a guest's table of functions.
const TABLE: usize = 100_000;

/// A guest, compiled: each [`call`](Guest::call) gets a fresh instance of it.
pub struct Guest {
    instance: InstancePre<State>,
    engine: Engine,
}

/// Bounds of one call.
#[derive(Clone, Copy, Debug)]
pub struct GuestBounds {
    /// Maximum memory of the instance, in bytes. All of it is held for the call, whatever it uses, so that what a call can do does not
    /// depend on what else runs.
    pub memory: usize,
    /// Maximum processor time.
    pub cpu: Duration,
    /// Maximum length of the output, in bytes.
    pub output: usize,
    /// The end of the call, whether it was waiting or working.
    pub until: Instant,
}

/// What a guest said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// Its meaning is between the guest and its host function; 0 is success.
    pub status: i32,
    /// What it put out.
    pub output: Vec<u8>,
}

/// Why a guest said nothing.
#[derive(Debug, thiserror::Error)]
pub enum GuestFault {
    /// It used up its time.
    #[error("it ran out of time")]
    Time,
    /// Its calls were nested too deep.
    #[error("it nests too deep")]
    Stack,
    /// It needed more memory than it may have.
    #[error("it ran out of memory")]
    Memory,
    /// Its output is too long.
    #[error("its output is too long")]
    Output,
    /// It met a bug of its own.
    #[error("it crashed")]
    Crash,
    /// The run's account has no room for it.
    #[error("{}", .0.reason)]
    Account(Failure),
    /// The host is broken, or the module is not a guest.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

struct State {
    memory: usize,
    /// Whether it asked for more memory than that.
    refused: bool,
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= self.memory;
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE)
    }
}

impl Guest {
    /// Compiles a guest, or takes it from the folder `cache`, on the thread that calls: about a second for each megabyte of module, or some
    /// milliseconds. `name` is the guest's own in that folder.
    ///
    /// # Errors
    /// If the engine cannot be made, or the bytes are not a module or import something.
    pub fn new(name: &str, module: &[u8], cache: Option<&Path>) -> Result<Guest, EngineError> {
        let mut config = wasmtime::Config::new();
        config
            .cranelift_opt_level(wasmtime::OptLevel::Speed)
            .native_unwind_info(false)
            .concurrency_support(false)
            .epoch_interruption(true)
            .max_wasm_stack(512 << 10)
            .async_stack_size(768 << 10);
        // Without the folder it is compiled in each process anew.
        let folder = cache.and_then(|folder| CompiledFolder::lock(folder, name).ok());
        if let Some(folder) = &folder {
            folder.configure(&mut config)?;
        }
        let engine = Engine::new(&config)?;
        let module = Module::new(&engine, module)?;
        drop(folder);
        let instance = Linker::new(&engine).instantiate_pre(&module)?;
        start_clock(&engine)?;
        Ok(Guest { instance, engine })
    }

    /// Asks the guest, in an instance of its own, with a head and a body, on the account of a run. `now` is what it takes for the time, in
    /// seconds since 1970. It yields to other tasks as it goes, and ends when the future is dropped.
    ///
    /// # Errors
    /// [`GuestFault`].
    pub async fn call(
        &self,
        account: &Account,
        (head, body): (&[u8], &[u8]),
        now: f64,
        bounds: GuestBounds,
    ) -> Result<GuestAnswer, GuestFault> {
        let _held = account.wait_to_hold(bounds.memory, 0, bounds.until).await.map_err(GuestFault::Account)?;
        let mut store = Store::new(&self.engine, State { memory: bounds.memory, refused: false });
        store.limiter(|state| state);
        store.set_epoch_deadline(1);
        let spent = Arc::new(AtomicU64::new(0));
        let limit = u64::try_from(bounds.cpu.as_nanos()).unwrap_or(u64::MAX);
        let (watched, owner) = (Arc::clone(&spent), account.clone());
        store.epoch_deadline_callback(move |_| {
            let over = watched.load(Relaxed) > limit || Instant::now() >= bounds.until || owner.is_out_of_cpu();
            Ok(if over { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
        });
        let spend = |time: Duration| {
            spent.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        };
        let work = timed(self.ask(&mut store, head, body, now, bounds.output), spend);
        let answered = account.metered(work).await;
        let refused = store.data().refused;
        answered.unwrap_or_else(|error| Err(fault(error, refused, account)))
    }

    async fn ask(
        &self,
        store: &mut Store<State>,
        head: &[u8],
        body: &[u8],
        now: f64,
        most: usize,
    ) -> wasmtime::Result<Result<GuestAnswer, GuestFault>> {
        let instance = self.instance.instantiate_async(&mut *store).await?;
        let memory = instance
            .get_memory(&mut *store, "memory")
            .ok_or_else(|| wasmtime::Error::msg("the guest exports no memory"))?;
        let size = u32::try_from(head.len() + body.len())?;
        let reserve = instance.get_typed_func::<u32, u32>(&mut *store, "reserve")?;
        let at = reserve.call_async(&mut *store, size).await? as usize;
        memory.write(&mut *store, at, head)?;
        memory.write(&mut *store, at + head.len(), body)?;
        let answer = instance.get_typed_func::<(u32, f64), i32>(&mut *store, "answer")?;
        let status = answer.call_async(&mut *store, (u32::try_from(head.len())?, now)).await?;
        let at = instance.get_typed_func::<(), u32>(&mut *store, "output")?.call_async(&mut *store, ()).await?;
        let length = instance.get_typed_func::<(), u32>(&mut *store, "output_len")?.call_async(&mut *store, ()).await?;
        let (at, length) = (at as usize, length as usize);
        if length > most {
            return Ok(Err(GuestFault::Output));
        }
        let output = memory.data(&*store).get(at..at.saturating_add(length)).unwrap_or_default().to_vec();
        Ok(Ok(GuestAnswer { status, output }))
    }
}

/// Why the engine ended a guest. A guest that gets no more memory ends itself, as it does where it meets a bug of its own.
fn fault(error: wasmtime::Error, refused: bool, account: &Account) -> GuestFault {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => match account.spend_cpu(Duration::ZERO) {
            Err(failure) => GuestFault::Account(failure),
            Ok(()) => GuestFault::Time,
        },
        // A guest has a stack in its memory, too, at the lowest addresses: below it there is no memory. Which of the two is used up first
        // depends on the machine.
        Some(Trap::StackOverflow | Trap::MemoryOutOfBounds) => GuestFault::Stack,
        Some(_) if refused => GuestFault::Memory,
        Some(_) => GuestFault::Crash,
        None if refused => GuestFault::Memory,
        None => GuestFault::Engine(EngineError::from(error)),
    }
}
