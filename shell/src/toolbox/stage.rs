//! A stage of a pipeline: a command that runs in its own instance, on its own thread.

use std::sync::Arc;

use tokio::sync::oneshot;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wattle_capability::files::Files;
use wattle_rt::Account;

use super::engine::{CompiledModule, MAX_MEMORY};
use super::wait::{Waiter, cancellable};
use super::wasi::{Exit, Guest};
use crate::bounds::StageBounds;
use crate::command::{Command, CommandOutcome, KillReason, Spawn, Status};
use crate::stream::Stream;

/// Maximum size of the arguments and the environment together, in bytes.
const MAX_ARGUMENTS: usize = 2 << 20;

/// Runs a command in a new instance.
pub(super) async fn run(
    compiled: Arc<CompiledModule>,
    command: Command,
    files: Arc<Files>,
    spawn: Arc<dyn Spawn>,
    bounds: StageBounds,
) -> CommandOutcome {
    let (waiter, cancel_guard) = cancellable();
    let (sender, receiver) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let name = command.name().to_owned();
    let stderr = command.fd(2).cloned();
    let on_thread = Arc::clone(&compiled);
    let work = move || {
        waiter.bind_thread();
        let _entered = runtime.enter();
        // The receiver is gone if the caller dropped the future.
        let _ = sender.send(run_instance(&on_thread, command, files, spawn, bounds, waiter));
    };
    let killed = |reason| (CommandOutcome::Killed(reason), None);
    let (outcome, refusal) = match compiled.threads.run(work) {
        Ok(()) => receiver
            .await
            .unwrap_or_else(|_| killed(KillReason::Crash("the host failed".to_owned()))),
        Err(cause) => killed(KillReason::Start(format!("failed to start its thread: {cause}"))),
    };
    drop(cancel_guard);
    report_end(&name, stderr, &outcome, refusal).await;
    outcome
}

/// Writes a message to the command's standard error. If the host ended the command, the message
/// states the reason. If the command failed, it describes the first operation that the run's files
/// denied, if any.
async fn report_end(
    name: &str,
    stderr: Option<Stream>,
    outcome: &CommandOutcome,
    refusal: Option<String>,
) {
    let Some(stderr) = stderr else { return };
    let message = match outcome {
        CommandOutcome::Exited(Status::SUCCESS) => None,
        CommandOutcome::Exited(_) => refusal,
        CommandOutcome::Killed(reason) => {
            Some(reason.to_string()).filter(|message| !message.is_empty())
        }
    };
    if let Some(message) = message {
        // If standard error has no reader, the message is lost.
        let _ = stderr.write(format!("{name}: {message}\n").as_bytes()).await;
    }
}

/// Runs a command in an instance and drops everything that the instance holds. Returns the
/// command's outcome and the message about the first operation that the run's files denied, if any.
fn run_instance(
    compiled: &CompiledModule,
    command: Command,
    files: Arc<Files>,
    spawn: Arc<dyn Spawn>,
    bounds: StageBounds,
    waiter: Waiter,
) -> (CommandOutcome, Option<String>) {
    let sizes = command.argv.iter().map(|word| word.len() + 1);
    let sizes = sizes.chain(command.env.iter().map(|(name, value)| name.len() + value.len() + 2));
    if sizes.sum::<usize>() > MAX_ARGUMENTS {
        let reason = "its arguments and variables exceed 2 MiB; pass them through a pipe or a file"
            .to_owned();
        return (CommandOutcome::Killed(KillReason::Start(reason)), None);
    }
    let bounds = StageBounds { memory: bounds.memory.min(MAX_MEMORY), ..bounds };
    let mut store =
        Store::new(&compiled.engine, Guest::new(command, &files, spawn, bounds, waiter));
    store.limiter(|guest| &mut guest.limiter);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| match store.data().exit_reason() {
        Some(exit) => Err(exit.into()),
        None => Ok(UpdateDeadline::Continue(1)),
    });
    let outcome = match start(compiled, &mut store) {
        Ok(()) => CommandOutcome::Exited(Status::SUCCESS),
        Err(error) => outcome_of(store.data(), &error),
    };
    // The command has ended, so an exhausted account only stops the next command.
    let _ = store.data().charge();
    let refusal = store.data_mut().refusal.take();
    (outcome, refusal)
}

fn start(compiled: &CompiledModule, store: &mut Store<Guest>) -> wasmtime::Result<()> {
    let instance = compiled.instance.instantiate(&mut *store)?;
    store.data_mut().memory = instance.get_memory(&mut *store, "memory");
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call(store, ())
}

/// Returns the outcome of an instance that ended with an error.
fn outcome_of(guest: &Guest, error: &wasmtime::Error) -> CommandOutcome {
    if let Some(exit) = error.downcast_ref::<Exit>() {
        return match exit {
            Exit::Status(status) => CommandOutcome::Exited(*status),
            Exit::Pipe => CommandOutcome::Killed(KillReason::Pipe),
            Exit::Time => CommandOutcome::Killed(KillReason::Time(guest.bounds.time)),
            Exit::Account => CommandOutcome::Killed(KillReason::Account(
                guest.bounds.account.as_ref().map(Account::out_of_cpu).unwrap_or_default(),
            )),
            Exit::Cancelled => CommandOutcome::Killed(KillReason::Cancelled),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return CommandOutcome::Killed(KillReason::Start(
            "too many commands run at once".to_owned(),
        ));
    }
    if let Some(full) = &guest.limiter.account_failure {
        return CommandOutcome::Killed(KillReason::Account(full.reason.clone()));
    }
    if guest.limiter.refused {
        return CommandOutcome::Killed(KillReason::Memory(guest.bounds.memory));
    }
    CommandOutcome::Killed(match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => KillReason::Crash("its calls are nested too deep".to_owned()),
        Some(Trap::UnreachableCodeReached) => KillReason::Crash("it aborted".to_owned()),
        Some(trap) => KillReason::Crash(trap.to_string()),
        None => KillReason::Start(format!("{error:#}")),
    })
}
