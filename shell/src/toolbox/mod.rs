//! The toolbox: one module with all commands, of which each stage of a pipeline is an instance.
//!
//! A stage runs on a thread of its own, so that it may wait for a disk, a pipe or another command without holding up anything else, and
//! so that the stages of a pipeline share the processors as processes do.

mod ended;
mod engine;
mod stage;
mod wait;
mod wasi;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::Files;

pub use ended::{Ended, Killed, StageBounds, ToolboxError};
pub(crate) use wait::{Waited, Waiter};

use crate::command::{Command, Spawn};
use crate::commands::Commands;
use engine::Compiled;

/// The module, built from `shell/toolbox/commands`.
const MODULE: &[u8] = include_bytes!("commands.wasm.zst");
/// What it was built from, and the names of its commands.
const MANIFEST: &str = include_str!("commands.txt");
/// The most bytes of a module.
const MODULE_MOST: usize = 64 << 20;

/// The commands that come with the shell. A clone is the same toolbox.
#[derive(Clone)]
pub struct Toolbox(Arc<Inner>);

struct Inner {
    module: Module,
    names: Vec<Cow<'static, str>>,
    cache: Option<PathBuf>,
    compiled: OnceLock<Arc<Compiled>>,
    /// Held by whoever compiles.
    compiling: Mutex<()>,
}

enum Module {
    Packed,
    Plain(Vec<u8>),
}

impl Toolbox {
    /// Makes the toolbox. Nothing is compiled before the first command is run; what is compiled then is kept in the folder `cache`,
    /// which is made where it is missing and is the owner's alone, for other processes.
    ///
    /// # Errors
    /// Where the list of the commands is broken.
    pub fn new(cache: Option<&Path>) -> Result<Toolbox, ToolboxError> {
        let listed = MANIFEST.lines().find_map(|line| line.strip_prefix("commands:"));
        let listed = listed.ok_or_else(|| ToolboxError("the manifest lists no commands".to_owned()))?;
        let names = listed.split_whitespace().map(Cow::Borrowed).collect();
        Ok(Toolbox::of(Module::Packed, names, cache))
    }

    /// Makes a toolbox of another module: a WASI preview 1 command that tells by its first argument which of `names` it is.
    #[must_use]
    pub fn with_module(wasm: Vec<u8>, names: &[&str], cache: Option<&Path>) -> Toolbox {
        let names = names.iter().map(|name| Cow::Owned((*name).to_owned())).collect();
        Toolbox::of(Module::Plain(wasm), names, cache)
    }

    fn of(module: Module, mut names: Vec<Cow<'static, str>>, cache: Option<&Path>) -> Toolbox {
        names.sort();
        let cache = cache.map(Path::to_owned);
        Toolbox(Arc::new(Inner { module, names, cache, compiled: OnceLock::new(), compiling: Mutex::new(()) }))
    }

    /// The names of the commands, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(AsRef::as_ref)
    }

    /// Whether there is a command of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.names.binary_search_by(|held| held.as_ref().cmp(name)).is_ok()
    }

    /// Runs a command to its end. What keeps it from running, or ends it, is told on its standard error. Its streams are closed when this
    /// gives its end. Dropping the future ends the command within some milliseconds.
    pub async fn run(
        &self,
        command: Command,
        files: &Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: &StageBounds,
    ) -> Ended {
        match self.compiled().await {
            Ok(compiled) => stage::run(compiled, command, Arc::clone(files), spawn, bounds.clone()).await,
            Err(error) => {
                let killed = Killed::Start(error.to_string());
                if let Some(stderr) = command.fd(2) {
                    // Where nobody listens there is nobody to be told.
                    let _ = stderr.write(format!("{}: {killed}\n", command.name()).as_bytes()).await;
                }
                Ended::Killed(killed)
            }
        }
    }

    /// Compiles the module, where that has not been done yet: for whoever has time before the first command.
    ///
    /// # Errors
    /// Where it cannot be compiled.
    pub async fn prepare(&self) -> Result<(), ToolboxError> {
        self.compiled().await.map(drop)
    }

    async fn compiled(&self) -> Result<Arc<Compiled>, ToolboxError> {
        if let Some(compiled) = self.0.compiled.get() {
            return Ok(Arc::clone(compiled));
        }
        // It goes on where this is given up, so that the next one finds it done.
        let inner = Arc::clone(&self.0);
        let compiled = tokio::task::spawn_blocking(move || inner.compiled()).await;
        compiled.unwrap_or_else(|stopped| Err(ToolboxError(stopped.to_string())))
    }
}

impl Commands for Toolbox {
    fn names(&self) -> Vec<String> {
        Toolbox::names(self).map(str::to_owned).collect()
    }

    fn has(&self, name: &str) -> bool {
        Toolbox::has(self, name)
    }

    fn run<'a>(
        &'a self,
        command: Command,
        files: &'a Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: &'a StageBounds,
    ) -> BoxFuture<'a, Ended> {
        Toolbox::run(self, command, files, spawn, bounds).boxed()
    }
}

impl Inner {
    fn compiled(&self) -> Result<Arc<Compiled>, ToolboxError> {
        let _held = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = self.compiled.get() {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(self.compile()?);
        Ok(Arc::clone(self.compiled.get_or_init(|| compiled)))
    }

    fn compile(&self) -> Result<Compiled, ToolboxError> {
        let cache = self.cache.as_deref();
        match &self.module {
            Module::Plain(wasm) => Compiled::new(wasm, cache),
            Module::Packed => {
                let wasm = zstd::bulk::decompress(MODULE, MODULE_MOST);
                let wasm = wasm.map_err(|cause| ToolboxError(format!("the module cannot be unpacked: {cause}")))?;
                Compiled::new(&wasm, cache)
            }
        }
    }
}
