//! The catalog of all programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use wattle_rt::Callables;

use crate::folder::Folder;
use crate::problem::{Fault, Problem};
use crate::{Entry, Folders, Index, Name, builtin, nearest};

/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 3;

/// All programs by name, and the problems with files and folders that could not be loaded. A
/// catalog is cheap to clone and never changes: a reload creates a new one.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The programs. If the folders are empty, this is unset until a caller needs all built-in
    /// programs. [`get`](Catalog::get) then parses only the one with the given name.
    entries: Arc<OnceLock<BTreeMap<Name, Arc<Entry>>>>,
    problems: Arc<[Problem]>,
    /// The search index, built on first use.
    index: Arc<OnceLock<Index<Arc<Entry>>>>,
    /// The programs as others call them, built on first use.
    callables: Arc<OnceLock<Callables>>,
}

/// A catalog without programs.
impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::of_entries(BTreeMap::new())
    }
}

impl Catalog {
    /// Returns the catalog of the built-in programs.
    #[must_use]
    pub fn built_in() -> Catalog {
        Catalog::of_folders(&[], &[])
    }

    /// Loads the built-in programs and the programs in the folders: all `.wat` files that are
    /// directly in one of the folders. A program replaces a program of the same name from an
    /// earlier folder. It replaces a built-in program only if its front matter contains `replaces`.
    ///
    /// Loading never fails. Files and folders that cannot be used are omitted, and
    /// [`problems`](Catalog::problems) lists them.
    #[must_use]
    pub fn load<P: AsRef<Path>>(folders: &[P]) -> Catalog {
        Folders::open(folders, &|_, _| Ok(())).catalog().clone()
    }

    /// Creates a catalog with the given programs and without problems.
    pub(crate) fn of_entries(entries: BTreeMap<Name, Arc<Entry>>) -> Catalog {
        Catalog::new(OnceLock::from(entries), Vec::new())
    }

    fn new(entries: OnceLock<BTreeMap<Name, Arc<Entry>>>, problems: Vec<Problem>) -> Catalog {
        Catalog {
            entries: Arc::new(entries),
            problems: problems.into(),
            index: Arc::default(),
            callables: Arc::default(),
        }
    }

    fn entries(&self) -> &BTreeMap<Name, Arc<Entry>> {
        self.entries.get_or_init(builtin::programs)
    }

    /// Creates a catalog of the built-in programs, the programs in the folders, and `added` programs,
    /// which replace those of the same name.
    pub(crate) fn of_folders(folders: &[Folder], added: &[Entry]) -> Catalog {
        let layers: Vec<_> = folders.iter().map(Folder::contents).collect();
        if layers.iter().all(Vec::is_empty) && added.is_empty() {
            return Catalog::new(OnceLock::new(), Vec::new());
        }
        let mut entries = builtin::programs();
        let mut problems = Vec::new();
        let built_in: BTreeSet<Name> = entries.keys().cloned().collect();
        for layer in layers {
            let mut named: BTreeMap<Name, Vec<Arc<Entry>>> = BTreeMap::new();
            for program in layer {
                match program {
                    Ok(entry) => match shadowing(&entry, &built_in) {
                        Some(problem) => problems.push(problem),
                        None => named.entry(entry.name().clone()).or_default().push(entry),
                    },
                    Err(problem) => problems.push(problem),
                }
            }
            for (name, mut same) in named {
                match (same.pop(), same.is_empty()) {
                    (Some(only), true) => drop(entries.insert(name, only)),
                    // If several programs in one folder have the same name, none of them is used.
                    // A program with that name from an earlier folder is kept.
                    (Some(last), false) => {
                        problems.extend(same.iter().map(|other| duplicate(&last, other)))
                    }
                    (None, _) => {}
                }
            }
        }
        let added = added.iter().map(|entry| (entry.name().clone(), Arc::new(entry.clone())));
        entries.extend(added);
        Catalog::new(OnceLock::from(entries), problems)
    }

    /// Returns the programs as others call them by their names.
    #[must_use]
    pub fn callables(&self) -> &Callables {
        self.callables
            .get_or_init(|| Callables::new(self.entries().values().map(|entry| entry.callable())))
    }

    /// Returns the program with exactly this name, or `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        match self.entries.get() {
            Some(entries) => entries.get(name),
            None => builtin::program(name),
        }
    }

    /// Returns the program names that are similar to `name`, at most three, closest first. They are
    /// only suggestions; a call needs the exact name. Case, separators, word order and a namespace
    /// before the name are ignored.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&Name> {
        let distance = |known: &Name| nearest::distance(name, known.as_str());
        let mut close: Vec<(usize, &Name)> =
            self.entries().keys().filter_map(|known| Some((distance(known)?, known))).collect();
        close.sort();
        close.into_iter().take(MAX_SUGGESTIONS).map(|(_, known)| known).collect()
    }

    /// Searches the programs by keywords. Returns the matching programs, most relevant first.
    /// Matches in the name weigh most, followed by tags, description, arguments and results.
    /// `words` may be a whole message.
    #[must_use]
    pub fn search(&self, words: &str) -> Vec<&Arc<Entry>> {
        let index = self.index.get_or_init(|| {
            Index::new(self.iter().map(|entry| (Arc::clone(entry), entry.fields())))
        });
        index.rank(words).into_iter().map(|(entry, _)| entry).collect()
    }

    /// Returns an iterator over all programs, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.entries().values()
    }

    /// Returns true if one catalog is a clone of the other. Catalogs that were created separately
    /// are different, even if their content is equal.
    #[must_use]
    pub fn is(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }

    /// Returns the number of programs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns true if there are no programs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Returns the problems with files and folders that could not be loaded, in the order of the
    /// folders.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Checks that a program in a folder has the name of a built-in program if and only if its front
/// matter contains `replaces`. Returns the problem, or `None` if there is none.
fn shadowing(entry: &Entry, built_in: &BTreeSet<Name>) -> Option<Problem> {
    let name = entry.name().to_string();
    let fault = match (&entry.meta().replaces, built_in.contains(entry.name())) {
        (None, true) => Fault::Shadows { name },
        (Some(_), false) => Fault::ReplacesNothing(name),
        (Some(_), true) | (None, false) => return None,
    };
    Some(Problem::new(entry.origin().to_string(), None, fault))
}

fn duplicate(entry: &Entry, other: &Entry) -> Problem {
    let fault =
        Fault::Duplicate { name: entry.name().to_string(), other: other.origin().to_string() };
    Problem::new(entry.origin().to_string(), None, fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_programs_are_parsed_when_all_of_them_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::load(&[folder.path()]);
        assert!(catalog.get("file_read").is_some() && catalog.get("file_red").is_none());
        assert!(catalog.entries.get().is_none());
        assert!(catalog.iter().any(|entry| entry.name().as_str() == "file_read"));
        assert!(catalog.entries.get().is_some());
        std::fs::write(folder.path().join("broken.wat"), "(out 1)").unwrap();
        let catalog = Catalog::load(&[folder.path()]);
        assert_eq!((catalog.problems().len(), catalog.len()), (1, Catalog::built_in().len()));
    }
}
