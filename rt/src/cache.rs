//! The cache of compiled programs.
//!
//! It has two layers. The first maps a program's source to the program. The second maps the content
//! hash of a module to its compiled code. Sources that differ only in whitespace and comments share
//! code. Sources that differ in a string literal do not, because the literal is part of the module.
//!
//! Both layers are bounded in bytes and in their number of entries, and shared by all runs. Each
//! entry is computed once, even if many tasks request it at the same time.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::Diagnostic;
use crate::program::{CompiledCode, Program};

/// A content hash. Tenants share the cache, so the hash must resist collisions.
pub(crate) type Key = [u8; 32];

/// The cached result of preparing a source: a program, or a diagnostic that explains why the source
/// is invalid.
pub(crate) type PrepareResult = Result<Program, Arc<Diagnostic>>;

/// The outcome of an attempt to prepare a source.
pub(crate) enum Preparation {
    /// A result that is cached.
    Final(PrepareResult),
    /// A failure that does not depend on the source. It is not cached, so the next use tries again.
    Retry(Arc<Diagnostic>),
}

/// Maximum number of entries of each layer. The code of a program takes two memory mappings, and
/// Linux permits a process 65,530 unless it is configured otherwise.
const ENTRIES: u64 = 4_096;

pub(crate) struct Programs {
    /// Programs by source. A lookup compares whole sources, not only hashes, so two sources never
    /// collide.
    texts: Cache<String, PrepareResult, Weights>,
    modules: Cache<Key, Arc<CompiledCode>, Weights>,
}

/// The weights of the entries of a layer, in bytes.
#[derive(Clone)]
struct Weights {
    /// Minimum weight of an entry. It limits the number of entries.
    least: u64,
}

impl Weighter<String, PrepareResult> for Weights {
    fn weight(&self, text: &String, prepared: &PrepareResult) -> u64 {
        // The source is stored twice: as the key and in the program. A program keeps its code, even
        // if the other layer has removed the code.
        let code = prepared.as_ref().map_or(0, |program| program.compiled().size());
        (512 + 2 * text.len() as u64 + code as u64).max(self.least)
    }
}

impl Weighter<Key, Arc<CompiledCode>> for Weights {
    fn weight(&self, _: &Key, compiled: &Arc<CompiledCode>) -> u64 {
        (1_024 + compiled.size() as u64).max(self.least)
    }
}

impl Programs {
    /// Creates a cache that holds at most `bytes` of sources and compiled code. Each layer holds at
    /// most half of it, because either layer may hold code that the other does not.
    pub(crate) fn new(bytes: u64) -> Self {
        let half = bytes / 2;
        let weights = Weights { least: half.div_ceil(ENTRIES) };
        Programs {
            texts: Cache::with_weighter(ENTRIES as usize, half, weights.clone()),
            modules: Cache::with_weighter(ENTRIES as usize, half, weights),
        }
    }

    /// Returns the cached result of preparing a source, if there is one.
    pub(crate) fn cached(&self, text: &str) -> Option<PrepareResult> {
        self.texts.get(text)
    }

    /// Returns the program for a source. If it is not cached, prepares it with `prepare`.
    /// Concurrent requests for an uncached source share one preparation, unless it ends with
    /// [`Preparation::Retry`].
    pub(crate) async fn text(
        &self,
        text: &str,
        prepare: impl Future<Output = Preparation>,
    ) -> PrepareResult {
        match self.texts.get_value_or_guard_async(text).await {
            Ok(prepared) => prepared,
            Err(guard) => {
                let prepared = match prepare.await {
                    Preparation::Final(prepared) => prepared,
                    Preparation::Retry(diagnostic) => return Err(diagnostic),
                };
                // The insertion fails only if the entry was removed in the meantime. The next use
                // then prepares the source again.
                let _ = guard.insert(prepared.clone());
                prepared
            }
        }
    }

    /// Returns the compiled code of a module. If it is not cached, compiles it with `compile`.
    pub(crate) async fn module<E>(
        &self,
        key: Key,
        compile: impl Future<Output = Result<Arc<CompiledCode>, E>>,
    ) -> Result<Arc<CompiledCode>, E> {
        self.modules.get_or_insert_async(&key, compile).await
    }

    /// Returns the number of compiled modules in the cache.
    pub(crate) fn len(&self) -> usize {
        self.modules.len()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Severity;

    fn diagnostic(code: &'static str) -> Arc<Diagnostic> {
        Arc::new(Diagnostic::new("", Severity::Error, code, 0..0, "", None))
    }

    #[tokio::test]
    async fn a_text_is_prepared_again_after_the_host_was_busy() {
        let programs = Programs::new(1 << 20);
        let attempts = Cell::new(0);
        for _ in 0..3 {
            let prepare = async {
                attempts.set(attempts.get() + 1);
                Preparation::Retry(diagnostic("host-busy"))
            };
            assert_eq!(programs.text("(resv \"a\")", prepare).await.unwrap_err().code, "host-busy");
        }
        assert_eq!(attempts.get(), 3, "each use tries again");
    }

    #[tokio::test]
    async fn the_number_of_entries_is_limited() {
        let programs = Programs::new(1 << 30);
        for number in 0..2 * ENTRIES {
            let prepare = async { Preparation::Final(Err(diagnostic("unknown-name"))) };
            programs.text(&format!("(f {number})"), prepare).await.unwrap_err();
        }
        let cached = programs.texts.len() as u64;
        assert!((ENTRIES / 2..=ENTRIES).contains(&cached), "{cached} texts are cached");
    }

    #[tokio::test]
    async fn a_text_that_takes_too_long_stays_refused() {
        let programs = Programs::new(1 << 20);
        let attempts = Cell::new(0);
        for _ in 0..3 {
            let prepare = async {
                attempts.set(attempts.get() + 1);
                Preparation::Final(Err(diagnostic("compile-time")))
            };
            assert_eq!(
                programs.text("(resv \"a\")", prepare).await.unwrap_err().code,
                "compile-time"
            );
        }
        assert_eq!(attempts.get(), 1);
    }
}
