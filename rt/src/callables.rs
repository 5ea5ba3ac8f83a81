//! The programs of a catalog that other programs call by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_lang::Callable;

/// The programs that a program may call by name, as in `(file_read "a.txt")`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Callables {
    pub(crate) programs: Arc<BTreeMap<String, Callable>>,
    /// Hash of the programs. Sources are translated with them, so it is part of a source's key in
    /// the cache.
    pub(crate) key: [u8; 32],
}

impl Callables {
    /// Indexes programs by name. If a name occurs twice, the last one is used.
    #[must_use]
    pub fn new(programs: impl IntoIterator<Item = Callable>) -> Callables {
        let programs: BTreeMap<String, Callable> =
            programs.into_iter().map(|program| (program.name.clone(), program)).collect();
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        for program in programs.values() {
            add(&program.name);
            add(if program.is_typed { "typed" } else { "text" });
            for param in &program.params {
                add(if param.is_optional { "optional" } else { "required" });
                add(&param.name);
            }
        }
        Callables { programs: Arc::new(programs), key: hasher.finalize().into() }
    }
}
