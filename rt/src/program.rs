//! A program that is ready to run: compiled, linked, and with its authority known.

use std::sync::Arc;

use wasmtime::{InstancePre, ModuleExport};

use crate::{Authority, Grants, Run, Signature, Signatures};
use crate::{Diagnostic, Position};

/// A program that compiled. Cheap to clone, shared by all its runs, and holds nothing of any of them.
#[derive(Clone)]
pub struct Program(Arc<Prepared>);

struct Prepared {
    source: String,
    warnings: Vec<Diagnostic>,
    compiled: Arc<Compiled>,
}

/// Compiled and pre-linked code; several texts may share it.
pub(crate) struct Compiled {
    pub(crate) instance: InstancePre<Run>,
    pub(crate) run: ModuleExport,
    pub(crate) memory: ModuleExport,
    /// The first address behind the static data.
    pub(crate) heap: u32,
    /// The host functions that the module imports: all that it could touch.
    pub(crate) imports: Vec<Signature>,
    /// The calls of them that it may make.
    pub(crate) authority: Authority,
    /// Namespaces of those.
    pub(crate) capabilities: Vec<&'static str>,
    /// Whether any imported function may wait.
    pub(crate) waits: bool,
}

impl Compiled {
    /// Bytes of machine code and metadata.
    pub(crate) fn size(&self) -> usize {
        let image = self.instance.module().image_range();
        (image.end as usize).saturating_sub(image.start as usize)
    }
}

impl Program {
    pub(crate) fn new(source: String, warnings: Vec<Diagnostic>, compiled: Arc<Compiled>) -> Program {
        Program(Arc::new(Prepared { source, warnings, compiled }))
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.0.compiled
    }

    /// The text as the author wrote it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// What was tolerated in the text, each with its place.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.0.warnings
    }

    /// The host functions that the program imports: nothing else is linked, so it can call no others.
    #[must_use]
    pub fn imports(&self) -> &[Signature] {
        &self.0.compiled.imports
    }

    /// The calls of host functions that the program may make, with what is known of their arguments before it runs.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.0.compiled.authority
    }

    /// The capabilities that the program needs and the grants lack.
    #[must_use]
    pub fn missing(&self, grants: &Grants) -> Vec<&'static str> {
        self.0.compiled.capabilities.iter().copied().filter(|name| !grants.allows(name)).collect()
    }

    /// Where in the author's text a place in the module stands; `None` where it belongs to no text.
    pub(crate) fn locate(&self, host: &Signatures, offset: Option<usize>) -> Option<Position> {
        let span = wattle_lang::locate(self.source(), host, offset?)?;
        Some(Position::of(self.source(), span.start as usize))
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("capabilities", &self.0.compiled.capabilities).finish_non_exhaustive()
    }
}
