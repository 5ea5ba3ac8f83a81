//! One stage: an instance on a thread of its own, from its start to its end.

use std::sync::Arc;

use tokio::sync::oneshot;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wattle_capability::files::Files;
use wattle_rt::Account;

use super::ended::{Ended, Killed, StageBounds};
use super::engine::{Compiled, MEMORY_MOST, THREAD_STACK};
use super::wait::{Waiter, lifeline};
use super::wasi::{Exit, Stage};
use crate::command::{Command, Spawn, Status};
use crate::stream::Stream;

/// The most bytes of arguments and environment together.
const WORDS_MOST: usize = 2 << 20;

/// Runs a command in an instance of its own.
pub(super) async fn run(
    compiled: Arc<Compiled>,
    command: Command,
    files: Arc<Files>,
    spawn: Arc<dyn Spawn>,
    bounds: StageBounds,
) -> Ended {
    let (waiter, lifeline) = lifeline();
    let (tell, told) = oneshot::channel();
    let host = tokio::runtime::Handle::current();
    let name = command.name().to_owned();
    let stderr = command.fd(2).cloned();
    let work = move || {
        waiter.settle();
        let _entered = host.enter();
        let (ended, notes) = stage(&compiled, command, files, spawn, bounds, waiter);
        let _ = tell.send((ended, notes));
    };
    let thread = std::thread::Builder::new().name("wattle-stage".to_owned()).stack_size(THREAD_STACK);
    let (ended, note) = match thread.spawn(work) {
        Ok(_) => told.await.unwrap_or_else(|_| (Ended::Killed(Killed::Crash("the host failed".to_owned())), None)),
        Err(cause) => (Ended::Killed(Killed::Start(format!("no thread for it: {cause}"))), None),
    };
    drop(lifeline);
    tell_end(&name, stderr, &ended, note).await;
    ended
}

/// Says on a command's standard error what it could not say itself.
async fn tell_end(name: &str, stderr: Option<Stream>, ended: &Ended, note: Option<String>) {
    let Some(stderr) = stderr else { return };
    let words = match ended {
        Ended::Exited(Status::SUCCESS) => None,
        Ended::Exited(_) => note,
        Ended::Killed(killed) => Some(killed.to_string()).filter(|words| !words.is_empty()),
    };
    if let Some(words) = words {
        // Where nobody listens there is nobody to be told.
        let _ = stderr.write(format!("{name}: {words}\n").as_bytes()).await;
    }
}

/// Runs the instance, and drops all that it held; gives what a refusal said, too.
fn stage(
    compiled: &Compiled,
    command: Command,
    files: Arc<Files>,
    spawn: Arc<dyn Spawn>,
    bounds: StageBounds,
    waiter: Waiter,
) -> (Ended, Option<String>) {
    let sizes = command.argv.iter().map(|word| word.len() + 1);
    let sizes = sizes.chain(command.env.iter().map(|(name, value)| name.len() + value.len() + 2));
    if sizes.sum::<usize>() > WORDS_MOST {
        let why = "its arguments and variables have more than 2 MiB; pass them by a pipe or a file".to_owned();
        return (Ended::Killed(Killed::Start(why)), None);
    }
    let bounds = StageBounds { memory: bounds.memory.min(MEMORY_MOST), ..bounds };
    let mut store = Store::new(&compiled.engine, Stage::new(command, files, spawn, bounds, waiter));
    store.limiter(|stage| &mut stage.limit);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| match store.data().over() {
        Some(exit) => Err(exit.into()),
        None => Ok(UpdateDeadline::Continue(1)),
    });
    let ended = match start(compiled, &mut store) {
        Ok(()) => Ended::Exited(Status::SUCCESS),
        Err(error) => ended(store.data(), &error),
    };
    let _ = store.data().charge();
    let note = store.data_mut().refusal.take();
    (ended, note)
}

fn start(compiled: &Compiled, store: &mut Store<Stage>) -> wasmtime::Result<()> {
    let instance = compiled.instance.instantiate(&mut *store)?;
    store.data_mut().memory = instance.get_memory(&mut *store, "memory");
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call(store, ())
}

fn ended(stage: &Stage, error: &wasmtime::Error) -> Ended {
    if let Some(exit) = error.downcast_ref::<Exit>() {
        return match exit {
            Exit::Status(status) => Ended::Exited(*status),
            Exit::Pipe => Ended::Killed(Killed::Pipe),
            Exit::Time => Ended::Killed(Killed::Time(stage.bounds.time)),
            Exit::Account => Ended::Killed(Killed::Account(
                stage.bounds.account.as_ref().map(Account::out_of_cpu).unwrap_or_default(),
            )),
            Exit::Cut => Ended::Killed(Killed::Cut),
        };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Ended::Killed(Killed::Start("too many commands run at once".to_owned()));
    }
    if let Some(full) = &stage.limit.full {
        return Ended::Killed(Killed::Account(full.reason.clone()));
    }
    if stage.limit.refused {
        return Ended::Killed(Killed::Memory(stage.bounds.memory));
    }
    Ended::Killed(match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => Killed::Crash("its calls are nested too deep".to_owned()),
        Some(Trap::UnreachableCodeReached) => Killed::Crash("it gave up".to_owned()),
        Some(trap) => Killed::Crash(trap.to_string()),
        None => Killed::Start(format!("{error:#}")),
    })
}
