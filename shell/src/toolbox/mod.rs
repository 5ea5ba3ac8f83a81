//! The toolbox: one WebAssembly module with all commands. Each stage of a pipeline runs in its own
//! instance of the module.
//!
//! A stage runs on its own thread, because it may block on a disk, a pipe or another command. The
//! stages of a pipeline run in parallel, like processes.

mod engine;
mod stage;
mod threads;
mod wait;
mod wasi;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::Files;
use wattle_capability::guests::unpack;

use crate::bounds::StageBounds;
use crate::command::{Command, CommandOutcome, Commands, KillReason, Spawn};
use crate::lock::lock;
use engine::CompiledModule;

/// The compressed module, built from `shell/toolbox/commands`.
static MODULE: &[u8] = include_bytes!("commands.wasm.zst");
/// The manifest of the module: the hash of its sources, and the names of its commands.
static MANIFEST: &str = include_str!("commands.txt");

/// An error that prevents the toolbox from loading or compiling.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the shell's commands: {0}")]
pub struct ToolboxError(String);

/// The bundled commands of the shell. Clones share the compiled module.
#[derive(Clone)]
pub struct Toolbox(Arc<Inner>);

struct Inner {
    module: Module,
    names: Vec<Cow<'static, str>>,
    cache: Option<PathBuf>,
    compiled: OnceLock<Arc<CompiledModule>>,
    /// The lock held during compilation.
    compiling: Mutex<()>,
}

enum Module {
    Packed,
    Plain(Vec<u8>),
}

impl Toolbox {
    /// Creates the toolbox. The module is compiled when the first command runs, and cached in the
    /// folder `cache` for other processes. A missing folder is created and is accessible only to
    /// its owner.
    ///
    /// # Errors
    /// If the manifest lists no commands.
    pub fn new(cache: Option<&Path>) -> Result<Toolbox, ToolboxError> {
        let listed = MANIFEST.lines().find_map(|line| line.strip_prefix("commands:"));
        let listed =
            listed.ok_or_else(|| ToolboxError("the manifest lists no commands".to_owned()))?;
        let names = listed.split_whitespace().map(Cow::Borrowed).collect();
        Ok(Toolbox::from_module(Module::Packed, names, cache))
    }

    /// Creates a toolbox from another module. The module is a WASI preview 1 command. Its first
    /// argument is the name of the command to run, which is one of `names`.
    #[must_use]
    pub fn with_module(wasm: Vec<u8>, names: &[&str], cache: Option<&Path>) -> Toolbox {
        let names = names.iter().map(|name| Cow::Owned((*name).to_owned())).collect();
        Toolbox::from_module(Module::Plain(wasm), names, cache)
    }

    fn from_module(
        module: Module,
        mut names: Vec<Cow<'static, str>>,
        cache: Option<&Path>,
    ) -> Toolbox {
        names.sort();
        let cache = cache.map(Path::to_owned);
        Toolbox(Arc::new(Inner {
            module,
            names,
            cache,
            compiled: OnceLock::new(),
            compiling: Mutex::new(()),
        }))
    }

    /// Returns the names of the commands, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(AsRef::as_ref)
    }

    /// Returns true if a command with this name exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.names.binary_search_by(|known| known.as_ref().cmp(name)).is_ok()
    }

    /// Runs a command to completion. If the command cannot run, or the host ends it, writes the
    /// reason to its standard error. The command's streams are closed when this function returns.
    /// Dropping the future ends the command within a few milliseconds.
    pub async fn run(
        &self,
        command: Command,
        files: &Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: &StageBounds,
    ) -> CommandOutcome {
        match self.compiled().await {
            Ok(compiled) => {
                stage::run(compiled, command, Arc::clone(files), spawn, bounds.clone()).await
            }
            Err(error) => {
                let killed = KillReason::Start(error.to_string());
                if let Some(stderr) = command.fd(2) {
                    // If standard error has no reader, the message is lost.
                    let _ =
                        stderr.write(format!("{}: {killed}\n", command.name()).as_bytes()).await;
                }
                CommandOutcome::Killed(killed)
            }
        }
    }

    /// Compiles the module if necessary, so that the first command starts faster.
    ///
    /// # Errors
    /// If the module cannot be compiled.
    pub async fn prepare(&self) -> Result<(), ToolboxError> {
        self.compiled().await.map(drop)
    }

    async fn compiled(&self) -> Result<Arc<CompiledModule>, ToolboxError> {
        if let Some(compiled) = self.0.compiled.get() {
            return Ok(Arc::clone(compiled));
        }
        // Dropping this future does not stop the compilation, so the next call can use its result.
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
    ) -> BoxFuture<'a, CommandOutcome> {
        Toolbox::run(self, command, files, spawn, bounds).boxed()
    }
}

impl Inner {
    fn compiled(&self) -> Result<Arc<CompiledModule>, ToolboxError> {
        let _lock = lock(&self.compiling);
        if let Some(compiled) = self.compiled.get() {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(self.compile()?);
        Ok(Arc::clone(self.compiled.get_or_init(|| compiled)))
    }

    fn compile(&self) -> Result<CompiledModule, ToolboxError> {
        let cache = self.cache.as_deref();
        match &self.module {
            Module::Plain(wasm) => CompiledModule::new(wasm, || Ok(wasm.clone()), cache),
            Module::Packed => {
                let unpack = || {
                    unpack(MODULE).map_err(|cause| {
                        wasmtime::Error::msg(format!("failed to decompress the module: {cause}"))
                    })
                };
                CompiledModule::new(MODULE, unpack, cache)
            }
        }
    }
}
