//! Execution of prepared programs.

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use wasmtime::{Store, UpdateDeadline};
use wattle_lang::FAIL;

use super::{EngineError, Inner, RunError, Runtime};
use crate::deadline::{Deadline, SharedDeadline};
use crate::host::OutOfTime;
use crate::outcome::{Bug, CallFailure, Exit, Outcome, Trap, TrapKind};
use crate::pool::panic_message;
use crate::program::{CompiledCode, Program};
use crate::run::{FailedCall, RunContext};
use crate::tape::{CallId, Halt, PriorEnd, TapeCursor};
use crate::{Account, Code, Failure, Grants, Kept, NestedContext, Owner, Preview, Run, Turn};

/// The parameters of one run of a program, in addition to the program and its grants.
struct Launch {
    args: Vec<String>,
    /// Maximum running time.
    time: Duration,
    /// The level of nesting, which is 0 for a top-level program.
    level: usize,
    tape: Option<TapeCursor>,
    /// The account and the deadline of the parent program, if there is one.
    parent: Option<(Account, SharedDeadline)>,
}

/// The module offsets that belong to an outcome. Their positions in the author's source are looked
/// up after the instance has been dropped.
struct Offsets {
    /// Candidates for the trap's position, most precise first. The first candidate that maps to the
    /// author's source is used.
    trap: Vec<Option<usize>>,
    /// The offset of the host call that explains the exit.
    failed_call: Option<usize>,
}

impl Runtime {
    /// Runs a program with its grants and returns its outcome. A program that fails or traps also
    /// has an outcome.
    ///
    /// If the future is dropped, the program ends within a few milliseconds.
    ///
    /// # Errors
    /// [`RunError::Denied`] if a grant is missing and [`RunError::Refused`] if the run's guard
    /// denies the program; in both cases nothing was executed. [`RunError::Bug`] if a host
    /// function panics, and [`RunError::Engine`] if the host itself fails.
    pub fn run(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
    ) -> impl Future<Output = Result<Outcome, RunError>> + Send {
        self.run_within(program, grants, args, self.inner.limits.time)
    }

    /// Runs a program as [`run`](Runtime::run) does, for at most `time` or the runtime's limit,
    /// whichever is shorter.
    ///
    /// # Errors
    /// The same as for [`run`](Runtime::run).
    pub fn run_within(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
        time: Duration,
    ) -> impl Future<Output = Result<Outcome, RunError>> + Send {
        let tape = grants.tape().cloned().map(TapeCursor::root);
        self.launch(program, grants, Launch { args, time, level: 0, tape, parent: None })
    }

    /// Runs a nested program as [`run`](Runtime::run) does, for at most `time` or the runtime's
    /// limit, whichever is shorter. The nested program must also end by its parent's deadline.
    ///
    /// # Errors
    /// The same as for [`run`](Runtime::run).
    pub fn run_nested(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        args: Vec<String>,
        time: Duration,
        nested: NestedContext,
    ) -> impl Future<Output = Result<Outcome, RunError>> + Send {
        let NestedContext { level, deadline, tape, account } = nested;
        let parent = Some((account, deadline));
        self.launch(program, grants, Launch { args, time, level, tape, parent })
    }

    async fn launch(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        launch: Launch,
    ) -> Result<Outcome, RunError> {
        let missing = program.missing(grants);
        if !missing.is_empty() {
            return Err(RunError::Denied(missing));
        }
        let tape = launch.tape.clone();
        let kept = grants.config::<Kept>().filter(|_| program.reads_kept());
        let kept = kept.map(|kept| kept.identity());
        let open = |tape: &TapeCursor| tape.open(program.source(), &launch.args, kept.as_deref());
        let opened = match tape.as_ref().map(open).transpose() {
            Err(halt) => return Ok(Outcome::halted(halt)),
            Ok(Some((_, Some(PriorEnd::TimedOut(timed_out))))) => {
                return Ok(Outcome::timed_out(timed_out));
            }
            Ok(Some((_, Some(PriorEnd::Refused(why))))) => return Err(RunError::Refused(why)),
            Ok(opened) => tape.zip(opened.map(|(id, _)| id)),
        };
        let guarded = self.guarded(program, grants, &launch, opened.as_ref()).await?;
        let account = match (&launch.parent, grants.account()) {
            (Some((account, _)), _) => Cow::Owned(account.clone()),
            (None, Some(account)) => Cow::Borrowed(account),
            (None, None) => Cow::Owned(self.open_account()),
        };
        let slot = self.inner.slot(launch.level, account.owner()).await;
        let started = Instant::now();
        let mut store = self.inner.store(launch, guarded, Account::clone(&account), started)?;
        let (ended, end) = {
            // The future is pinned here because it is large and therefore expensive to move.
            let call = AssertUnwindSafe(call_run(&mut store, program.compiled()));
            account.metered_since(started, pin!(call.catch_unwind())).await
        };
        let halt = opened.as_ref().and_then(|(cursor, _)| cursor.tape.halted());
        let (mut outcome, offsets) =
            self.inner.outcome(store, ended, halt, end.duration_since(started))?;
        drop(slot);
        self.add_positions(program, &mut outcome, offsets).await;
        let halted = matches!(&outcome.exit, Exit::Trapped(trap) if trap.kind == TrapKind::Halted);
        if let Some((tape, id)) = opened.filter(|_| !halted) {
            tape.close(&id, &outcome);
        }
        Ok(outcome)
    }

    /// Asks the run's guard about the program and returns the grants with the guard for this run of
    /// the program.
    async fn guarded(
        &self,
        program: &Program,
        grants: &Arc<Grants>,
        launch: &Launch,
        opened: Option<&(TapeCursor, CallId)>,
    ) -> Result<Arc<Grants>, RunError> {
        let Some(guard) = grants.guard() else { return Ok(Arc::clone(grants)) };
        let decided = guard
            .before(Preview::new(self, program, &launch.args, grants, launch.tape.as_ref()))
            .await;
        let decided = decided.map_err(|why| {
            if let Some((tape, id)) = opened.filter(|(cursor, _)| cursor.tape.halted().is_none()) {
                tape.refuse(id, &why);
            }
            RunError::Refused(why)
        })?;
        Ok(Arc::new(grants.as_ref().clone().guarded(decided)))
    }

    /// Adds the source positions of the trap and of the failed call to an outcome.
    async fn add_positions(&self, program: &Program, outcome: &mut Outcome, offsets: Offsets) {
        let Offsets { mut trap, failed_call } = offsets;
        trap.extend(failed_call.map(Some));
        let mut positions = self.locate(program, trap).await;
        let call_position = failed_call.and_then(|_| positions.pop().flatten());
        if let Exit::Trapped(trap) = &mut outcome.exit {
            trap.position = positions.into_iter().flatten().next();
        }
        if let Some(failure) = &mut outcome.failure {
            failure.position = call_position;
        }
    }
}

impl Inner {
    /// Waits for a slot at a level of nesting. Exhausting the instance pool would be an error.
    async fn slot(&self, level: usize, owner: &Owner) -> Option<Turn> {
        Some(self.slots.get(level)?.wait(owner).await)
    }

    /// Creates the store of a run and sets its limits on memory, time and fuel.
    fn store(
        &self,
        launch: Launch,
        grants: Arc<Grants>,
        account: Account,
        started: Instant,
    ) -> Result<Store<Box<Run>>, EngineError> {
        let Launch { args, time, level, tape, parent } = launch;
        let time = time.min(self.limits.time);
        let deadline = Deadline::new(started, time, parent.map(|(_, deadline)| deadline));
        let context = RunContext { level, deadline, tape, account };
        // The store itself takes almost a kilobyte, and a larger allocation would be much slower.
        let run = Box::new(Run::new(args, grants, self.limits.memory, context));
        let mut store = Store::new(&self.engine, run);
        store.limiter(|run| &mut run.memory_limit);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            let run = store.data();
            let goes_on = !run.deadline.remaining().is_zero() && !run.account().is_out_of_cpu();
            Ok(if goes_on { UpdateDeadline::Yield(1) } else { UpdateDeadline::Interrupt })
        });
        if let Some(fuel) = self.limits.fuel {
            store.set_fuel(fuel)?;
        }
        Ok(store)
    }

    /// Collects the outcome of a run from its store. Returns the outcome, still without source
    /// positions, and the offsets from which they are determined.
    fn outcome(
        &self,
        mut store: Store<Box<Run>>,
        ended: Result<wasmtime::Result<i32>, Box<dyn Any + Send>>,
        halt: Option<Halt>,
        duration: Duration,
    ) -> Result<(Outcome, Offsets), RunError> {
        // After a panic, the store may be in any state. Only the name of the last function called
        // is read from it before it is dropped.
        let ended = ended.map_err(|payload| bug(store.data(), payload))?;
        let (exit, trap) = match (halt, ended) {
            (Some(halt), _) => (Exit::Trapped(Trap::halted(halt)), Vec::new()),
            (None, Ok(code)) => (Exit::Returned(Code(code)), Vec::new()),
            (None, Err(_)) if store.data().ended => (Exit::Returned(Code::SUCCESS), Vec::new()),
            (None, Err(error)) => trapped(store.data(), error)?,
        };
        let memory_bytes = store.data().memory.map_or(0, |memory| memory.data_size(&store) as u64);
        let own_fuel =
            self.limits.fuel.map(|given| given.saturating_sub(store.get_fuel().unwrap_or(0)));
        let run = store.data_mut();
        let explains = |code: Code| match &exit {
            Exit::Returned(returned) => *returned == code,
            Exit::Trapped(trap) => matches!(trap.kind, TrapKind::Host(_)),
        };
        let failed = run.failed.take().filter(|failed| explains(failed.failure.code));
        let before = run.failed_before.take();
        let failed_call = failed.as_ref().and_then(|failed| failed.offset);
        let succeeded = exit == Exit::Returned(Code::SUCCESS);
        let artifacts = run.take_artifacts();
        let outcome = Outcome {
            calls: run.take_calls(),
            answer: run.take_answer().filter(|_| succeeded),
            artifacts: if succeeded { artifacts } else { Vec::new() },
            results: run.take_results(),
            log: run.take_log(),
            exit,
            failure: failed.map(|failed| call_failure(*failed, before)),
            fuel: own_fuel.map(|own| own.saturating_add(run.nested_fuel)),
            memory_bytes,
            duration,
        };
        Ok((outcome, Offsets { trap, failed_call }))
    }
}

/// Converts a panic in a host function into the bug that ends the run. A bug in a nested program
/// is passed on unchanged.
fn bug(run: &Run, payload: Box<dyn Any + Send>) -> Bug {
    match payload.downcast::<Bug>() {
        Ok(nested) => *nested,
        Err(payload) => Bug::new(run.last, &panic_message(payload.as_ref())),
    }
}

/// Converts an error from the engine into a trap. Returns the trap and the offsets of the
/// innermost frames. An error that is not a trap is a failure of the host itself.
fn trapped(run: &Run, error: wasmtime::Error) -> Result<(Exit, Vec<Option<usize>>), EngineError> {
    let time = run.deadline.time();
    let (kind, message) = if let Some(failure) = error.downcast_ref::<Failure>() {
        let function = run.failed.as_ref().map_or("", |failed| failed.function);
        match function {
            wattle_lang::TRAP => (TrapKind::Host(failure.code), failure.reason.clone()),
            _ => (TrapKind::Host(failure.code), format!("`{function}` failed: {failure}")),
        }
    } else if let Some(late) = error.downcast_ref::<OutOfTime>() {
        (TrapKind::Time, format!("{} in `{}`", out_of_time(time), late.function))
    } else if let Some(wasmtime::Trap::Interrupt) = error.downcast_ref()
        && run.account().is_out_of_cpu()
    {
        (TrapKind::Time, run.account().out_of_cpu())
    } else if let Some(trap) = error.downcast_ref::<wasmtime::Trap>() {
        describe(*trap, time)
    } else if let Some(failure) = &run.memory_limit.refused {
        (TrapKind::Memory, failure.reason.clone())
    } else {
        return Err(EngineError(error));
    };
    // A stack overflow occurs before the first instruction of a function. The position is then
    // that of the call, which is in the second frame.
    let frames =
        error.downcast_ref::<wasmtime::WasmBacktrace>().map_or(&[][..], |trace| trace.frames());
    let offsets = frames.iter().take(2).map(wasmtime::FrameInfo::module_offset).collect();
    Ok((Exit::Trapped(Trap { kind, message, position: None }), offsets))
}

/// Describes the failed call that ended a program. `before` is the previous failed call, if there is
/// one.
fn call_failure(failed: FailedCall, before: Option<Box<FailedCall>>) -> CallFailure {
    let FailedCall { function, mut failure, .. } = failed;
    let function = Some(function).filter(|name| *name != FAIL);
    if let Some(before) = before.filter(|_| function.is_none()) {
        let name = before.function;
        // A program may pass on the reason for an earlier failure.
        if name != FAIL && !failure.reason.contains(&before.failure.reason) {
            failure.reason += &format!(" (before that, `{name}` failed: {})", before.failure);
        }
    }
    CallFailure { function, failure, position: None }
}

/// Instantiates the program and calls its function `run`.
async fn call_run(store: &mut Store<Box<Run>>, compiled: &CompiledCode) -> wasmtime::Result<i32> {
    let instance = compiled.instance.instantiate_async(&mut *store).await?;
    let missing = |what: &str| wasmtime::Error::msg(format!("the module has no {what}"));
    let memory = instance
        .get_module_export(&mut *store, &compiled.memory)
        .and_then(wasmtime::Extern::into_memory);
    let memory = memory.ok_or_else(|| missing("memory"))?;
    compiled.initialize(memory.data_mut(&mut *store))?;
    store.data_mut().memory = Some(memory);
    store.data_mut().heap = compiled.heap;
    let run = instance
        .get_module_export(&mut *store, &compiled.run)
        .and_then(wasmtime::Extern::into_func);
    run.ok_or_else(|| missing("function `run`"))?
        .typed::<(), i32>(&*store)?
        .call_async(&mut *store, ())
        .await
}

fn out_of_time(time: Duration) -> String {
    format!("the program ran out of its {} ms", time.as_millis())
}

/// Describes an engine trap for the program's author.
fn describe(trap: wasmtime::Trap, time: Duration) -> (TrapKind, String) {
    use wasmtime::Trap as T;
    let (kind, message) = match trap {
        T::StackOverflow => (
            TrapKind::Stack,
            "calls are nested too deep; does a function call itself without an end?",
        ),
        T::MemoryOutOfBounds | T::HeapMisaligned => {
            (TrapKind::Memory, "access outside the memory; check the address and the length")
        }
        T::TableOutOfBounds => (TrapKind::Memory, "access outside the table"),
        T::IndirectCallToNull => (TrapKind::Call, "indirect call of an empty table entry"),
        T::BadSignature => (TrapKind::Call, "indirect call of a function of another type"),
        T::IntegerOverflow => (
            TrapKind::Arithmetic,
            "integer overflow: the result does not fit; a long holds up to 9223372036854775807",
        ),
        T::IntegerDivisionByZero => (TrapKind::Arithmetic, "integer division by zero"),
        T::BadConversionToInteger => {
            (TrapKind::Arithmetic, "the float is not a number, so it has no integer value")
        }
        T::UnreachableCodeReached => (TrapKind::Unreachable, "`unreachable` was reached"),
        T::Interrupt => {
            return (TrapKind::Time, format!("{}; does a loop never end?", out_of_time(time)));
        }
        T::OutOfFuel => (TrapKind::Time, "the program used up its fuel; does a loop never end?"),
        other => return (TrapKind::Call, other.to_string()),
    };
    (kind, message.to_owned())
}
