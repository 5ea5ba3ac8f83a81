//! The index of all programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::folder::Folder;
use crate::problem::{Fault, Problem};
use crate::{Entry, Folders, Index, Name, builtin, nearest};

/// The most names that a suggestion has.
const SUGGESTED: usize = 3;

/// All programs by name, and what was wrong with the files that are left out. A value that does not change: a reload makes
/// another one. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    entries: Arc<BTreeMap<Name, Arc<Entry>>>,
    problems: Arc<[Problem]>,
    /// What searches look into, made at the first one.
    index: Arc<OnceLock<Index<Arc<Entry>>>>,
}

impl Catalog {
    /// The programs that are compiled into the binary.
    #[must_use]
    pub fn built_in() -> Catalog {
        Catalog::of_folders(&[])
    }

    /// The built-in programs and over them those of the folders: a program takes the place of one of its name in an earlier
    /// folder, and of a built-in one where its front matter has `replaces`. Files are the `.wat` files directly in a folder.
    ///
    /// Never fails: files and folders that cannot be used are left out, and [`problems`](Catalog::problems) says why.
    #[must_use]
    pub fn load<P: AsRef<Path>>(folders: &[P]) -> Catalog {
        Folders::open(folders, &|_| Ok(())).catalog().clone()
    }

    /// The built-in programs, and over them those of the folders.
    pub(crate) fn of_folders(folders: &[Folder]) -> Catalog {
        let mut entries: BTreeMap<Name, Arc<Entry>> = BTreeMap::new();
        let mut problems = Vec::new();
        let mut built_in: BTreeSet<Name> = BTreeSet::new();
        for (at, layer) in std::iter::once(builtin::programs()).chain(folders.iter().map(Folder::contents)).enumerate()
        {
            let mut named: BTreeMap<Name, Vec<Arc<Entry>>> = BTreeMap::new();
            for program in layer {
                match program {
                    Ok(entry) => match shadowing(&entry, &built_in).filter(|_| at > 0) {
                        Some(problem) => problems.push(problem),
                        None => named.entry(entry.name().clone()).or_default().push(entry),
                    },
                    Err(problem) => problems.push(problem),
                }
            }
            for (name, mut same) in named {
                match (same.pop(), same.is_empty()) {
                    (Some(only), true) => drop(entries.insert(name, only)),
                    // None of several can be preferred, so what an earlier layer has stays.
                    (Some(last), false) => problems.extend(same.iter().map(|other| twice(&last, other))),
                    (None, _) => {}
                }
            }
            if at == 0 {
                built_in = entries.keys().cloned().collect();
            }
        }
        Catalog { entries: Arc::new(entries), problems: problems.into(), index: Arc::default() }
    }

    /// The program of exactly that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// The programs that a name comes close to, closest first, three at the most; for a suggestion, never for a call.
    /// Case, separators, the order of words and a namespace before the name do not count.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&Name> {
        let apart = |known: &Name| nearest::distance(name, known.as_str());
        let mut close: Vec<(usize, &Name)> =
            self.entries.keys().filter_map(|known| Some((apart(known)?, known))).collect();
        close.sort();
        close.into_iter().take(SUGGESTED).map(|(_, known)| known).collect()
    }

    /// The programs that some words are about, most relevant first: by name, tags, description, arguments and results, in this
    /// order of weight. The words may be a whole message.
    #[must_use]
    pub fn search(&self, words: &str) -> Vec<&Arc<Entry>> {
        let index = self.index.get_or_init(|| Index::new(self.iter().map(|entry| (Arc::clone(entry), entry.fields()))));
        index.rank(words).into_iter().map(|(entry, _)| entry).collect()
    }

    /// All programs, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// Whether the other one is this one, and not only like it.
    #[must_use]
    pub fn is(&self, other: &Catalog) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }

    /// How many programs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no program.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is wrong with the files and folders that were left out, in the order of the folders.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Checks a program of a folder against the names of the built-in ones: it takes the place of one only where it says so.
fn shadowing(entry: &Entry, built_in: &BTreeSet<Name>) -> Option<Problem> {
    let name = entry.name().to_string();
    let fault = match (&entry.meta().replaces, built_in.contains(entry.name())) {
        (None, true) => Fault::Shadows { name },
        (Some(_), false) => Fault::ReplacesNothing(name),
        (Some(_), true) | (None, false) => return None,
    };
    Some(Problem::new(entry.origin().to_string(), None, fault))
}

fn twice(entry: &Entry, other: &Entry) -> Problem {
    let fault = Fault::Twice { name: entry.name().to_string(), other: other.origin().to_string() };
    Problem::new(entry.origin().to_string(), None, fault)
}
