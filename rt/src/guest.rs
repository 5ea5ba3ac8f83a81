//! Guests: modules that are part of the host. They run in their own sandbox on behalf of a host
//! function, because the work could take any amount of time and memory.
//!
//! A guest imports nothing. It exports its memory and these functions:
//!
//! ```text
//! reserve (bytes) → address          reserves room for the input: the head, then the body
//! answer (head bytes, now) → status  does the work; now: seconds since 1970 as f64
//! output () → address                returns the address of the output
//! output_len () → bytes              returns the length of the output
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use wasmtime::{Engine, InstancePre, Linker, ResourceLimiter, Store, Trap, UpdateDeadline};

use crate::account::timed;
use crate::engine::start_clock;
use crate::{Account, EngineError, Failure, HostModule};

/// Maximum number of elements in a guest's function table.
const MAX_TABLE: usize = 100_000;

/// A compiled guest. Each [`call`](Guest::call) runs in a fresh instance.
pub struct Guest {
    instance: InstancePre<State>,
    engine: Engine,
}

/// Limits of one call.
#[derive(Clone, Copy, Debug)]
pub struct GuestBounds {
    /// Maximum memory of the instance, in bytes. The call holds all of this memory even if it uses
    /// less, so that its success does not depend on other work.
    pub memory: usize,
    /// Maximum processor time.
    pub cpu: Duration,
    /// Maximum length of the output, in bytes.
    pub output: usize,
    /// Deadline of the call. It also limits the wait for memory.
    pub until: Instant,
}

/// The status and the output that a guest returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// The status, whose meaning the guest and its host function define. 0 is success.
    pub status: i32,
    /// The output.
    pub output: Vec<u8>,
}

/// The reason why a guest returned no answer.
#[derive(Debug, thiserror::Error)]
pub enum GuestFault {
    /// The guest used up its time.
    #[error("it ran out of time")]
    Time,
    /// Calls inside the guest were nested too deeply.
    #[error("it nests too deep")]
    Stack,
    /// The guest needed more memory than its limit.
    #[error("it ran out of memory")]
    Memory,
    /// The output is longer than its limit.
    #[error("its output is too long")]
    Output,
    /// The guest crashed because of a bug.
    #[error("it crashed")]
    Crash,
    /// A limit of the run's account is exceeded.
    #[error("{}", .0.reason)]
    Account(Failure),
    /// The host itself failed, or the module is not a guest.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

struct State {
    memory: usize,
    /// If true, the guest asked for more memory than its limit.
    refused: bool,
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = desired <= self.memory;
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE)
    }
}

impl Guest {
    /// [Loads](HostModule::load) a guest from the folder `cache`, or compiles its `binary`. This
    /// blocks the calling thread: for about a second per megabyte if the module is compiled, and for
    /// a few milliseconds if it is loaded.
    ///
    /// # Errors
    /// If the engine cannot be created, if `binary` fails, or if its result is not a module or has
    /// imports.
    pub fn new(
        module: HostModule<'_>,
        cache: Option<&Path>,
        binary: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> Result<Guest, EngineError> {
        let mut config = wasmtime::Config::new();
        config
            .cranelift_opt_level(wasmtime::OptLevel::Speed)
            .native_unwind_info(false)
            .concurrency_support(false)
            .epoch_interruption(true)
            .max_wasm_stack(512 << 10)
            .async_stack_size(768 << 10);
        let engine = Engine::new(&config)?;
        let module = module.load(&engine, cache, || Ok(binary()?))?;
        let instance = Linker::new(&engine).instantiate_pre(&module)?;
        start_clock(&engine)?;
        Ok(Guest { instance, engine })
    }

    /// Calls the guest in a new instance, with an input that consists of a head and a body. Charges
    /// the run's account. A guest has no clock, so it receives the current time as `now`, in
    /// seconds since 1970. The call yields to other tasks and ends if the future is dropped.
    ///
    /// # Errors
    /// See [`GuestFault`] for the reasons.
    pub async fn call(
        &self,
        account: &Account,
        head: &[u8],
        body: &[u8],
        now: f64,
        bounds: GuestBounds,
    ) -> Result<GuestAnswer, GuestFault> {
        let _held = account
            .wait_to_hold(bounds.memory, 0, bounds.until)
            .await
            .map_err(GuestFault::Account)?;
        let mut store = Store::new(&self.engine, State { memory: bounds.memory, refused: false });
        store.limiter(|state| state);
        store.set_epoch_deadline(1);
        let spent = Arc::new(AtomicU64::new(0));
        let limit = u64::try_from(bounds.cpu.as_nanos()).unwrap_or(u64::MAX);
        let watched = Arc::clone(&spent);
        let owner = account.clone();
        store.epoch_deadline_callback(move |_| {
            let over = watched.load(Relaxed) > limit
                || Instant::now() >= bounds.until
                || owner.is_out_of_cpu();
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
        max_output: usize,
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
        let at = instance
            .get_typed_func::<(), u32>(&mut *store, "output")?
            .call_async(&mut *store, ())
            .await?;
        let length = instance
            .get_typed_func::<(), u32>(&mut *store, "output_len")?
            .call_async(&mut *store, ())
            .await?;
        let (at, length) = (at as usize, length as usize);
        if length > max_output {
            return Ok(Err(GuestFault::Output));
        }
        match memory.data(&*store).get(at..at.saturating_add(length)) {
            Some(output) => Ok(Ok(GuestAnswer { status, output: output.to_vec() })),
            // The guest names bytes beyond its memory.
            None => Ok(Err(GuestFault::Crash)),
        }
    }
}

/// Converts the engine error that ended a guest into a fault. `refused` is true if the guest was
/// denied more memory. It distinguishes a trap for lack of memory from a trap due to a bug.
fn fault(error: wasmtime::Error, refused: bool, account: &Account) -> GuestFault {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => match account.spend_cpu(Duration::ZERO) {
            Err(failure) => GuestFault::Account(failure),
            Ok(()) => GuestFault::Time,
        },
        // A guest also has a stack in its memory, at the lowest addresses, so an overflow runs past
        // the bounds of the memory. Which of the two stacks overflows first depends on the machine.
        Some(Trap::StackOverflow | Trap::MemoryOutOfBounds) => GuestFault::Stack,
        Some(_) if refused => GuestFault::Memory,
        Some(_) => GuestFault::Crash,
        None if refused => GuestFault::Memory,
        None => GuestFault::Engine(EngineError::from(error)),
    }
}
