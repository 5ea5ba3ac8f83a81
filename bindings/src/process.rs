//! What a process has once: the engine and the threads on which runs wait.

use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use wattle_agent::Host;

use crate::Error;

/// Maximum number of threads on which runs wait. Programs take turns on them.
const MAX_WORKERS: usize = 8;

/// The engine of this process.
pub struct Engine {
    pub(crate) host: Host,
    runtime: Runtime,
}

/// Returns the engine of this process. The first call creates it, which takes some milliseconds.
///
/// A process that was forked has none of the threads of its parent, so it gets an engine of its own.
///
/// # Errors
/// If the engine or its threads cannot be created.
pub fn engine() -> Result<&'static Engine, Error> {
    static ENGINE: PerProcess<Result<Engine, Error>> = PerProcess::new();
    ENGINE.get(create).as_ref().map_err(Clone::clone)
}

fn create() -> Result<Engine, Error> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("wattle")
        .enable_all()
        .build()
        .map_err(|error| Error::host(format!("failed to start the threads: {error}")))?;
    let host = Host::built_in().map_err(Error::host)?;
    Ok(Engine { host, runtime })
}

impl Engine {
    /// Returns the runtime on which runs wait. Its own threads must never block.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

/// A value that each process makes for itself, also one that was forked.
pub(crate) struct PerProcess<T> {
    /// The value, with the id of the process that made it.
    made: OnceLock<(u32, T)>,
    /// The value of a process that was forked from that one.
    forked: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { made: OnceLock::new(), forked: OnceLock::new() }
    }

    /// Returns this process's value, or `None` if it has not been made.
    pub(crate) fn existing(&self) -> Option<&T> {
        let id = std::process::id();
        let mut level = self;
        loop {
            match level.made.get()? {
                (owner, value) if *owner == id => return Some(value),
                _ => level = level.forked.get()?,
            }
        }
    }

    /// Returns this process's value, which `make` creates if there is none.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        let id = std::process::id();
        let mut level = self;
        while let Some((owner, value)) = level.made.get() {
            if *owner == id {
                return value;
            }
            level = level.forked.get_or_init(Box::default);
        }
        &level.made.get_or_init(|| (id, make())).1
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}
