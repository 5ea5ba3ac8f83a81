//! The cache of compiled programs.
//!
//! Two layers: a program's text leads to its module, a module's content hash to the compiled code. Texts that differ only in blanks and
//! comments share code; texts that differ in a string literal never do, since the literal is part of the module. Both layers are
//! bounded in bytes, shared by all runs, and filled once per key however many ask for it at the same time.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::Diagnostic;
use crate::program::{Compiled, Program};

/// A content hash. The cache is shared by tenants, so it must be one that nobody can collide.
pub(crate) type Key = [u8; 32];

/// What a text was found to be: a program, or why it is none.
pub(crate) type Known = Result<Program, Arc<Diagnostic>>;

/// What came of the attempt to find that out.
pub(crate) enum Found {
    /// It is known from now on.
    Known(Known),
    /// Nothing was found out: the next use tries again.
    Nothing(Arc<Diagnostic>),
}

pub(crate) struct Programs {
    /// By the whole text: compared, not only hashed, so nobody can collide this layer either.
    texts: Cache<String, Known, ByText>,
    modules: Cache<Key, Arc<Compiled>, ByCode>,
}

#[derive(Clone)]
struct ByText;

impl Weighter<String, Known> for ByText {
    fn weight(&self, text: &String, _: &Known) -> u64 {
        // The code is accounted for in the other layer. The text is held twice: as the key, and by what is known of it.
        512 + 2 * text.len() as u64
    }
}

#[derive(Clone)]
struct ByCode;

impl Weighter<Key, Arc<Compiled>> for ByCode {
    fn weight(&self, _: &Key, compiled: &Arc<Compiled>) -> u64 {
        1_024 + compiled.size() as u64
    }
}

impl Programs {
    /// A cache that holds at most so many bytes of compiled code, and a quarter as many of texts.
    pub(crate) fn new(bytes: u64) -> Self {
        Programs {
            texts: Cache::with_weighter(4_096, bytes / 4, ByText),
            modules: Cache::with_weighter(4_096, bytes, ByCode),
        }
    }

    /// The program of a text, made by `make` where it is not known yet. Concurrent first uses make it once, unless nothing is found
    /// out.
    pub(crate) async fn text(&self, text: &str, make: impl Future<Output = Found>) -> Known {
        if let Some(known) = self.texts.get(text) {
            return known;
        }
        match self.texts.get_value_or_guard_async(text).await {
            Ok(known) => known,
            Err(guard) => {
                let known = match make.await {
                    Found::Known(known) => known,
                    Found::Nothing(why) => return Err(why),
                };
                // Refused only where the entry was removed meanwhile: then the next use makes it again.
                let _ = guard.insert(known.clone());
                known
            }
        }
    }

    /// The compiled code of a module, made by `make` where it is not known yet.
    pub(crate) async fn module<E>(
        &self,
        key: Key,
        make: impl Future<Output = Result<Arc<Compiled>, E>>,
    ) -> Result<Arc<Compiled>, E> {
        self.modules.get_or_insert_async(&key, make).await
    }

    /// How many compiled modules are held.
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
    async fn a_host_that_is_busy_is_no_fault_of_the_text() {
        let (programs, made) = (Programs::new(1 << 20), Cell::new(0));
        for _ in 0..3 {
            let make = async {
                made.set(made.get() + 1);
                Found::Nothing(diagnostic("host-busy"))
            };
            assert_eq!(programs.text("(resv \"a\")", make).await.unwrap_err().code, "host-busy");
        }
        assert_eq!(made.get(), 3, "each use tries again");
    }

    #[tokio::test]
    async fn a_text_that_takes_too_long_is_remembered_as_refused() {
        let (programs, made) = (Programs::new(1 << 20), Cell::new(0));
        for _ in 0..3 {
            let make = async {
                made.set(made.get() + 1);
                Found::Known(Err(diagnostic("compile-time")))
            };
            assert_eq!(programs.text("(resv \"a\")", make).await.unwrap_err().code, "compile-time");
        }
        assert_eq!(made.get(), 1);
    }
}
