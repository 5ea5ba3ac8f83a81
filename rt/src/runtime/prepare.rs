//! Preparation of programs: compiling and linking a source, and mapping positions in the module
//! back to the source.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use wasmtime::Module;
use wattle_lang::{AssembledModule, cost};

use super::{Inner, Runtime};
use crate::cache::{Key, Preparation, PrepareResult};
use crate::data::{self, Segment};
use crate::pool::catch_panic;
use crate::program::{CompiledCode, Program};
use crate::{Diagnostic, FixResult, HostModule, Interruption, Position, Severity, Signatures};

/// Maximum length of a source that the calling thread processes, in bytes. The pool processes
/// longer sources and sources that cost more to compile than their length suggests.
const MAX_INLINE: usize = 16 << 10;

/// The reason why a source cannot be prepared.
enum PrepareError {
    /// The source is not a valid program.
    Invalid(Box<Diagnostic>),
    /// The processing of the source did not finish.
    Unfinished(Interruption),
}

impl Runtime {
    /// Compiles a source to a program, or returns the program from the cache.
    ///
    /// A pool of threads processes sources that are long or expensive to compile. Dropping the
    /// future removes the work from the pool's queue, but does not stop a thread that has begun it.
    ///
    /// # Errors
    /// If the source is invalid. The error is a diagnostic for the source's author, with a position
    /// in the source. The code `host-busy` does not mean that the source is invalid: the same
    /// source can be submitted again.
    pub async fn prepare(&self, source: &str) -> Result<Program, Arc<Diagnostic>> {
        self.prepare_in(source, None).await
    }

    /// Compiles a source that belongs to the host, such as that of a built-in program, like
    /// [`prepare`](Runtime::prepare). The machine code is stored in the folder `cache`, from which
    /// other processes [load](HostModule::load) it.
    ///
    /// # Errors
    /// The same as for [`prepare`](Runtime::prepare).
    pub async fn prepare_stored(
        &self,
        source: &str,
        cache: &Path,
    ) -> Result<Program, Arc<Diagnostic>> {
        self.prepare_in(source, Some(cache)).await
    }

    async fn prepare_in(&self, source: &str, cache: Option<&Path>) -> PrepareResult {
        match self.cached_key(source) {
            Some(key) => match self.inner.programs.cached(&key) {
                Some(prepared) => prepared,
                None => self.prepare_uncached(source, &key, cache).await,
            },
            // Such a source is invalid, so it is not worth a place in the cache.
            None => match self.prepare_now(source, cache).await {
                Preparation::Final(prepared) => prepared,
                Preparation::Retry(diagnostic) => Err(diagnostic),
            },
        }
    }

    /// Returns the key of a source in the cache: the source itself, after the hash of the programs
    /// that it may call and of the kept variables that it may read. Returns `None` for a source that begins like such a hash.
    fn cached_key<'a>(&self, source: &'a str) -> Option<Cow<'a, str>> {
        match self.names {
            Some(key) => {
                let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(format!("\0{key}{source}").into())
            }
            None => (!source.starts_with('\0')).then_some(source.into()),
        }
    }

    async fn prepare_uncached(
        &self,
        source: &str,
        key: &str,
        cache: Option<&Path>,
    ) -> PrepareResult {
        // This future is large. Boxing it keeps it out of the futures that contain this one.
        Box::pin(self.inner.programs.text(key, self.prepare_now(source, cache))).await
    }

    async fn prepare_now(&self, source: &str, cache: Option<&Path>) -> Preparation {
        match self.assemble_and_compile(source, cache).await {
            Ok(program) => Preparation::Final(Ok(program)),
            Err(rejected) => {
                let busy = matches!(rejected, PrepareError::Unfinished(Interruption::Busy));
                let diagnostic = self.diagnostic(source, rejected).into();
                if busy {
                    Preparation::Retry(diagnostic)
                } else {
                    Preparation::Final(Err(diagnostic))
                }
            }
        }
    }

    async fn assemble_and_compile(
        &self,
        source: &str,
        cache: Option<&Path>,
    ) -> Result<Program, PrepareError> {
        let signatures = self.signatures.clone();
        let assemble = move |_: &Inner, source: &str| wattle_lang::assemble(source, &signatures);
        let assembled = self.inline_or_pooled(source, assemble).await?;
        let assembled = Arc::new(assembled.map_err(PrepareError::Invalid)?);
        let mut hasher = blake3::Hasher::new();
        let key: Key = hasher
            .update(&self.inner.settings)
            .update(assembled.module.as_bytes())
            .finalize()
            .into();
        let compile = self.compile(source, &assembled, cache);
        let compiled = self.inner.programs.module(key, compile).await?;
        let signatures = self.signatures.clone();
        Ok(Program::new(source.to_owned(), signatures, assembled.warnings.clone(), compiled))
    }

    /// Compiles a module on the calling thread if compilation is certain to be quick, and otherwise
    /// on the pool. A module that is stored in a folder is always processed on the pool, because
    /// files block.
    async fn compile(
        &self,
        source: &str,
        assembled: &Arc<AssembledModule>,
        cache: Option<&Path>,
    ) -> Result<Arc<CompiledCode>, PrepareError> {
        if cache.is_none()
            && is_small(source)
            && let Some(compiled) = catch_panic(|| self.inner.compile_if_quick(assembled))
                .map_err(PrepareError::Unfinished)?
        {
            return Ok(compiled);
        }
        let assembled = Arc::clone(assembled);
        let cache = cache.map(Path::to_owned);
        let signatures = self.signatures.clone();
        self.pooled(source, move |inner, source| {
            inner.compile(source, &signatures, &assembled, cache.as_deref())
        })
        .await?
        .map_err(PrepareError::Invalid)
    }

    /// Processes a source on the calling thread if the source is small, and otherwise on the pool.
    async fn inline_or_pooled<T: Send + 'static>(
        &self,
        source: &str,
        work: impl FnOnce(&Inner, &str) -> T + Send + 'static,
    ) -> Result<T, PrepareError> {
        if is_small(source) {
            Ok(work(&self.inner, source))
        } else {
            self.pooled(source, work).await
        }
    }

    /// Processes a source on a thread of the pool.
    async fn pooled<T: Send + 'static>(
        &self,
        source: &str,
        work: impl FnOnce(&Inner, &str) -> T + Send + 'static,
    ) -> Result<T, PrepareError> {
        let inner = Arc::clone(&self.inner);
        let source = source.to_owned();
        let run = self.inner.pool.run(&self.owner, move || work(&inner, &source));
        run.await.map_err(PrepareError::Unfinished)
    }

    /// Runs [`check`](crate::check) on a thread of the pool. Returns at most `limit` faults of the
    /// source. If the check takes too long, returns a single diagnostic that says so.
    pub async fn check(&self, source: &str, limit: usize) -> Vec<Diagnostic> {
        let signatures = self.signatures.clone();
        let check = move |_: &Inner, source: &str| wattle_lang::check(source, &signatures, limit);
        let found = self.pooled(source, check).await;
        found.unwrap_or_else(|rejected| vec![*self.diagnostic(source, rejected)])
    }

    /// Runs [`fix`](crate::fix) on a thread of the pool. If this takes too long, the result
    /// contains the unchanged source and a diagnostic that says so.
    pub async fn fix(&self, source: &str) -> FixResult {
        let signatures = self.signatures.clone();
        let fixed =
            self.pooled(source, move |_, source| wattle_lang::fix(source, &signatures)).await;
        fixed.unwrap_or_else(|rejected| {
            let rest = Some(self.diagnostic(source, rejected));
            FixResult { source: source.to_owned(), applied: Vec::new(), rest }
        })
    }

    fn diagnostic(&self, source: &str, rejected: PrepareError) -> Box<Diagnostic> {
        match rejected {
            PrepareError::Invalid(diagnostic) => diagnostic,
            PrepareError::Unfinished(why) => {
                Box::new(why.diagnostic(source, self.inner.limits.compile))
            }
        }
    }

    /// Returns the source position of each of the program's [uses](crate::Authority::uses), in the
    /// same order.
    ///
    /// A long source is processed on a thread of the pool. If the pool is busy, all positions in
    /// the result are `None`.
    pub async fn use_positions(&self, program: &Program) -> Vec<Option<Position>> {
        self.locate(program, program.authority().uses().iter().map(|each| each.offset).collect())
            .await
    }

    /// Maps each offset in the program's module to its position in the author's source.
    pub(super) async fn locate(
        &self,
        program: &Program,
        offsets: Vec<Option<usize>>,
    ) -> Vec<Option<Position>> {
        if offsets.iter().all(Option::is_none) {
            return vec![None; offsets.len()];
        }
        let known: Vec<usize> = offsets.iter().flatten().copied().collect();
        let signatures = program.signatures().clone();
        let locate =
            move |_: &Inner, source: &str| wattle_lang::locate_all(source, &signatures, &known);
        // This future is large. Boxing it keeps it out of the futures that contain this one.
        let located = Box::pin(self.inline_or_pooled(program.source(), locate));
        let spans = located.await.unwrap_or_default();
        let mut spans = spans.into_iter();
        let position = |offset: Option<usize>| {
            let span = offset.and_then(|_| spans.next())??;
            Some(Position::of(program.source(), span.start as usize))
        };
        offsets.into_iter().map(position).collect()
    }
}

/// Returns true if the source is small enough to be processed on the calling thread. A source over
/// the maximum length counts as small, because it is rejected at once.
fn is_small(source: &str) -> bool {
    source.len() <= MAX_INLINE || wattle_lang::is_too_long(source)
}

impl Inner {
    /// Encodes, compiles and links a module. With a folder `cache`, loads the compiled module from
    /// it, or stores it there.
    fn compile(
        &self,
        source: &str,
        signatures: &Signatures,
        assembled: &AssembledModule,
        cache: Option<&Path>,
    ) -> Result<Arc<CompiledCode>, Box<Diagnostic>> {
        let compiled = || {
            let binary = assembled.encode()?;
            cost::of(&binary).map_err(|_| wasmtime::Error::msg("it costs too much to compile"))?;
            let (module, data) = self.module(&binary, cache)?;
            let compiled = self.link(assembled, &module, binary, data)?;
            // On this thread of the pool, because that can take long for a large module.
            compiled.authority();
            Ok(compiled)
        };
        compiled().map_err(|error| explain(source, signatures, &error))
    }

    /// Compiles a module if that takes at most a few milliseconds. Returns `None` if compilation
    /// may take longer or fails.
    fn compile_if_quick(&self, assembled: &AssembledModule) -> Option<Arc<CompiledCode>> {
        let binary = assembled.encode().ok()?;
        cost::of(&binary).ok().filter(cost::Cost::is_quick)?;
        let (module, data) = self.module(&binary, None).ok()?;
        self.link(assembled, &module, binary, data).ok()
    }

    /// Compiles a binary, or loads its machine code from the folder `cache`. Returns the module and
    /// the data that it does not contain.
    fn module(
        &self,
        binary: &[u8],
        cache: Option<&Path>,
    ) -> wasmtime::Result<(Module, Vec<Segment>)> {
        let (code, data) = data::separate(binary);
        let module = match cache {
            Some(_) => {
                HostModule { name: "program", identity: &code }
                    .load(&self.engine, cache, || Ok(code.to_vec()))?
            }
            None => Module::from_binary(&self.engine, &code)?,
        };
        Ok((module, data))
    }

    /// Links a module that was compiled from `binary` without its `data`.
    fn link(
        &self,
        assembled: &AssembledModule,
        module: &Module,
        binary: Vec<u8>,
        data: Vec<Segment>,
    ) -> wasmtime::Result<Arc<CompiledCode>> {
        let export = |name| {
            module
                .get_export_index(name)
                .ok_or_else(|| wasmtime::Error::msg(format!("the module has no export `{name}`")))
        };
        let run = export("run")?;
        let memory = export("mem.tape")?;
        let instance = self.linker.instantiate_pre(module)?;
        let mut capabilities: Vec<&'static str> =
            assembled.imports.iter().map(|import| import.module).collect();
        capabilities.sort_unstable();
        capabilities.dedup();
        Ok(Arc::new(CompiledCode {
            instance,
            run,
            memory,
            data,
            heap: assembled.heap_base,
            capabilities,
            imports: assembled.imports.clone(),
            binary,
            authority: OnceLock::new(),
        }))
    }
}

/// Returns the diagnostic for a module that could not be compiled, with a position in the
/// author's source. If only the engine knows the reason, the position is the start of the
/// source.
fn explain(source: &str, signatures: &Signatures, error: &wasmtime::Error) -> Box<Diagnostic> {
    wattle_lang::explain(source, signatures).unwrap_or_else(|| {
        let message = format!("the engine refuses the module: {}", error.root_cause());
        Box::new(Diagnostic::new(source, Severity::Error, "refused-module", 0..0, message, None))
    })
}
