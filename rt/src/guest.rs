//! Guests: modules that come with the host and run in a sandbox of their own on behalf of a host function, because what they do could
//! take any time and any memory.
//!
//! A guest imports nothing. It exports its memory and
//!
//! ```text
//! reserve (bytes) → address                the host writes the input there: head, then body
//! answer (bytes of head, seconds f64) → status     seconds since 1970: a guest has no clock of its own
//! output () → address, output_len () → bytes       what it says with that status
//! ```

use std::time::Instant;

use wasmtime::{Engine, InstancePre, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, Trap, UpdateDeadline};

use crate::EngineError;
use crate::engine::start_clock;

/// A guest, compiled: each [`call`](Guest::call) gets a fresh instance of it.
pub struct Guest {
    instance: InstancePre<State>,
    engine: Engine,
}

struct State {
    limits: StoreLimits,
    deadline: Instant,
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
    /// Its time was up.
    #[error("it ran out of time")]
    Time,
    /// Its calls were nested too deep.
    #[error("it nests too deep")]
    Stack,
    /// It ran out of memory, or met a case that it cannot go on from.
    #[error("it ran out of memory")]
    Memory,
    /// The host is broken, or the module is no guest.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Guest {
    /// Compiles a guest. It takes about a second for each megabyte of module, on the thread that calls.
    ///
    /// # Errors
    /// Where the engine cannot be made, or the module is none or imports something.
    pub fn new(module: &[u8]) -> Result<Guest, EngineError> {
        let mut config = wasmtime::Config::new();
        config
            .cranelift_opt_level(wasmtime::OptLevel::None)
            .native_unwind_info(false)
            .concurrency_support(false)
            .epoch_interruption(true)
            .max_wasm_stack(512 << 10)
            .async_stack_size(768 << 10);
        let engine = Engine::new(&config)?;
        start_clock(&engine)?;
        let instance = Linker::new(&engine).instantiate_pre(&Module::new(&engine, module)?)?;
        Ok(Guest { instance, engine })
    }

    /// Asks the guest, in an instance of its own with at most `memory` bytes. `now` is what it takes for the time, in seconds since 1970.
    /// It makes way for others as it goes, and dropping the future ends it.
    ///
    /// # Errors
    /// [`GuestFault`].
    pub async fn call(
        &self,
        (head, body): (&[u8], &[u8]),
        now: f64,
        memory: usize,
        deadline: Instant,
    ) -> Result<GuestAnswer, GuestFault> {
        let limits = StoreLimitsBuilder::new().memory_size(memory).instances(1).build();
        let mut store = Store::new(&self.engine, State { limits, deadline });
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            Ok(if Instant::now() < store.data().deadline {
                UpdateDeadline::Yield(1)
            } else {
                UpdateDeadline::Interrupt
            })
        });
        self.ask(&mut store, head, body, now).await.map_err(|error| match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => GuestFault::Time,
            Some(Trap::StackOverflow) => GuestFault::Stack,
            Some(_) => GuestFault::Memory,
            None => GuestFault::Engine(EngineError::from(error)),
        })
    }

    async fn ask(&self, store: &mut Store<State>, head: &[u8], body: &[u8], now: f64) -> wasmtime::Result<GuestAnswer> {
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
        let output = memory.data(&*store).get(at..at.saturating_add(length)).unwrap_or_default().to_vec();
        Ok(GuestAnswer { status, output })
    }
}
