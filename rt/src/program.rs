//! A program that is ready to run: compiled and linked, with known authority.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use wasmtime::{InstancePre, ModuleExport};

use crate::data::Segment;
use crate::{Authority, Diagnostic, Grants, Run, Signature, Signatures};

/// A compiled program. It is cheap to clone, is shared by its runs, and holds no per-run state.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
    named: Option<Arc<NamedProgram>>,
}

/// A program that is started by its name, through the rules of its catalog for its arguments. What
/// somebody gives to a program by its name applies only to such a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProgram {
    /// The name of the program in the catalog.
    pub name: String,
    /// The effects that the program's author asks the operator to allow, as rules such as
    /// `host:api.example.com`. Asking gives nothing.
    pub asks: Vec<String>,
}

struct Inner {
    source: String,
    /// The functions and programs that the source was translated with.
    signatures: Signatures,
    warnings: Vec<Diagnostic>,
    compiled: Arc<CompiledCode>,
}

/// Compiled and pre-linked code. Several sources may share it.
pub(crate) struct CompiledCode {
    pub(crate) instance: InstancePre<Box<Run>>,
    pub(crate) run: ModuleExport,
    pub(crate) memory: ModuleExport,
    /// The initial content of the memory, which is not in the compiled code.
    pub(crate) data: Vec<Segment>,
    /// The first address after the static data.
    pub(crate) heap: u32,
    /// The host functions that the module imports. The module can call no others.
    pub(crate) imports: Vec<Signature>,
    /// The module's binary, with its data. Its authority is determined from it.
    pub(crate) binary: Vec<u8>,
    pub(crate) authority: OnceLock<Authority>,
    /// The namespaces of the imported host functions.
    pub(crate) capabilities: Vec<&'static str>,
}

impl CompiledCode {
    /// Returns the size of the machine code, its metadata, the module's binary and the list of its
    /// data, in bytes.
    pub(crate) fn size(&self) -> usize {
        let image = self.instance.module().image_range();
        let machine_code = (image.end as usize).saturating_sub(image.start as usize);
        machine_code + self.binary.len() + size_of_val(self.data.as_slice())
    }

    /// Copies the initial content into the memory of a new instance.
    ///
    /// # Errors
    /// If the memory has no room for it. Data without room is never separated from the code.
    pub(crate) fn initialize(&self, memory: &mut [u8]) -> wasmtime::Result<()> {
        for segment in &self.data {
            let target = memory.get_mut(segment.addresses.clone());
            let content = self.binary.get(segment.content.clone());
            let (Some(target), Some(content)) = (target, content) else {
                return Err(wasmtime::Error::msg("the memory has no room for the module's data"));
            };
            target.copy_from_slice(content);
        }
        Ok(())
    }

    /// Returns the host function calls that the module may make. They are determined on first use,
    /// because a run without a guard does not need them.
    pub(crate) fn authority(&self) -> &Authority {
        self.authority.get_or_init(|| Authority::of(&self.binary, &self.imports, self.heap))
    }
}

impl Program {
    pub(crate) fn new(
        source: String,
        signatures: Signatures,
        warnings: Vec<Diagnostic>,
        compiled: Arc<CompiledCode>,
    ) -> Program {
        let inner = Arc::new(Inner { source, signatures, warnings, compiled });
        Program { inner, named: None }
    }

    /// Returns the program as one that is started by its name. The caller has found its source in
    /// the catalog under that name, and has checked the arguments as the catalog requires.
    #[must_use]
    pub fn named(self, named: Arc<NamedProgram>) -> Program {
        Program { named: Some(named), ..self }
    }

    /// Returns the name by which the program is started, or `None` if only its source was given.
    #[must_use]
    pub fn name(&self) -> Option<&NamedProgram> {
        self.named.as_deref()
    }

    pub(crate) fn signatures(&self) -> &Signatures {
        &self.inner.signatures
    }

    pub(crate) fn compiled(&self) -> &CompiledCode {
        &self.inner.compiled
    }

    /// Returns the source as the author wrote it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns the warnings about the source.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.inner.warnings
    }

    /// Returns the host functions that the program imports. The program can call no others, because
    /// only these are linked.
    #[must_use]
    pub fn imports(&self) -> &[Signature] {
        &self.inner.compiled.imports
    }

    /// Returns the capabilities through which the program may reach outside itself, sorted.
    /// Capabilities that only compute are not among them.
    #[must_use]
    pub fn uses(&self) -> Vec<&'static str> {
        let reaching = self.imports().iter().filter(|import| import.reaches_out());
        let modules: BTreeSet<_> = reaching.map(|import| import.module).collect();
        modules.into_iter().collect()
    }

    /// Returns the host function calls that the program may make, with everything that is known
    /// about their arguments before the program runs.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.inner.compiled.authority()
    }

    /// Returns true if the program reads values that earlier programs of its run kept.
    pub(crate) fn reads_kept(&self) -> bool {
        self.imports().iter().any(|function| {
            wattle_lang::KEPT.split_once('.') == Some((function.module, function.name))
        })
    }

    /// Returns true if two programs have the same code, even if their sources differ.
    #[must_use]
    pub fn is_same_code(&self, other: &Program) -> bool {
        self.inner.compiled.binary == other.inner.compiled.binary
    }

    /// Returns the capabilities that the program needs but the grants do not allow.
    #[must_use]
    pub fn missing(&self, grants: &Grants) -> Vec<&'static str> {
        self.inner
            .compiled
            .capabilities
            .iter()
            .copied()
            .filter(|name| !grants.allows(name))
            .collect()
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("capabilities", &self.inner.compiled.capabilities)
            .finish_non_exhaustive()
    }
}
