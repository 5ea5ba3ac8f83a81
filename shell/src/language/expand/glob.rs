//! Globbing: the search for files of the run whose paths match a pattern. The results are sorted by
//! the bytes of their paths.

use std::sync::Arc;

use wattle_capability::files::{EntryKind, Files};

use crate::language::interpreter::{Flow, Interpreter};
use crate::language::paths;
use crate::language::pattern::{self, Cache, Fragment, Matching, Pattern};

/// Maximum number of names that one pattern is matched against.
const MAX_NAMES: usize = 200_000;

/// Maximum total number of steps for matching one pattern against all names.
const MAX_STEPS: u64 = 20_000_000;

/// Options for globbing.
#[derive(Clone, Copy)]
struct GlobOptions {
    extended: bool,
    fold: bool,
    dots: bool,
    stars: bool,
}

/// A path component of a pattern.
enum Component {
    /// A plain name.
    Name(String),
    Match {
        pattern: Pattern,
        dot: bool,
    },
    /// `**`
    Folders,
}

impl Interpreter {
    /// Returns the paths that a field matches, sorted.
    pub(super) async fn glob(&mut self, field: &[Fragment], extended: bool) -> Flow<Vec<String>> {
        let options = GlobOptions {
            extended,
            fold: self.options.nocaseglob,
            dots: self.options.dotglob,
            stars: self.options.globstar,
        };
        let components = components(field, options);
        let absolute = field.first().is_some_and(|run| run.text.starts_with('/'));
        let folder_only = field.last().is_some_and(|run| run.text.ends_with('/'));
        let run = self.run.clone();
        let cwd = self.folders.current.clone();
        let look = move || {
            let mut search = Search {
                files: &run.files,
                cache: &run.patterns,
                cwd: &cwd,
                options,
                names_seen: 0,
                steps: 0,
                found: Vec::new(),
            };
            let start = if absolute { "/" } else { "" };
            let complete = search.walk(start, &components, folder_only);
            search.found.sort_unstable();
            search.found.dedup();
            (search.found, complete)
        };
        let looked = if self.run.files.is_memory() {
            Ok(look())
        } else {
            tokio::task::spawn_blocking(look).await
        };
        match looked {
            Ok((found, true)) => Ok(found),
            Ok((_, false)) => Err(self.exceed(format!(
                "a pattern looked at more than {MAX_NAMES} names, or takes too long on them: name \
                 the folder more closely"
            ))),
            Err(_) => Ok(Vec::new()),
        }
    }
}

fn components(field: &[Fragment], options: GlobOptions) -> Vec<Component> {
    let mut names: Vec<Vec<Fragment>> = vec![Vec::new()];
    for run in field {
        for (index, piece) in run.text.split('/').enumerate() {
            if index > 0 {
                names.push(Vec::new());
            }
            if let (Some(name), false) = (names.last_mut(), piece.is_empty()) {
                name.push(Fragment { text: piece.into(), quoted: run.quoted });
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
        .into_iter()
        .map(|name| match name.as_slice() {
            [run] if options.stars && run.text == "**" && !run.quoted => Component::Folders,
            fragments if pattern::is_special(fragments, options.extended) => {
                let dot = fragments.first().is_some_and(|run| run.text.starts_with('.'));
                Component::Match {
                    pattern: Pattern::new(fragments, options.extended, options.fold),
                    dot,
                }
            }
            _ => Component::Name(super::field_text(name)),
        })
        .collect()
}

/// A search for the paths that a pattern matches.
struct Search<'a> {
    files: &'a Arc<Files>,
    cache: &'a Cache,
    cwd: &'a str,
    options: GlobOptions,
    /// Number of names examined so far.
    names_seen: usize,
    /// Total number of steps of all matches so far.
    steps: u64,
    found: Vec<String>,
}

impl Search<'_> {
    /// Finds the paths under `path` that match pattern components. Returns false if a limit was
    /// reached.
    fn walk(&mut self, path: &str, components: &[Component], folder_only: bool) -> bool {
        let Some((component, rest)) = components.split_first() else {
            self.add(path, folder_only);
            return true;
        };
        match component {
            Component::Name(name) => {
                let path = joined(path, name);
                // A path that does not exist matches nothing.
                self.files.stat_link(&paths::absolute(self.cwd, &path)).is_err()
                    || self.walk(&path, rest, folder_only)
            }
            Component::Match { pattern, dot } => self.list(path).is_none_or(|names| {
                names.into_iter().all(|(name, kind)| {
                    self.names_seen += 1;
                    let hidden = name.starts_with('.') && !dot && !self.options.dots;
                    if hidden || !self.is_match(pattern, &name) {
                        return self.is_within_limits();
                    }
                    let path = joined(path, &name);
                    let on = rest.is_empty() && !folder_only || self.is_folder(&path, kind);
                    self.is_within_limits() && (!on || self.walk(&path, rest, folder_only))
                })
            }),
            Component::Folders => self.walk_all(path, rest, folder_only),
        }
    }

    /// Matches `**`: the folder and all of its subfolders. At the end of a pattern, `**` also
    /// matches files. Returns false if a limit was reached.
    fn walk_all(&mut self, path: &str, rest: &[Component], folder_only: bool) -> bool {
        if !rest.is_empty() && !self.walk(path, rest, folder_only) {
            return false;
        }
        let Some(names) = self.list(path) else { return true };
        for (name, kind) in names {
            self.names_seen += 1;
            if self.names_seen > MAX_NAMES {
                return false;
            }
            if name.starts_with('.') && !self.options.dots {
                continue;
            }
            let path = joined(path, &name);
            if rest.is_empty() {
                self.add(&path, folder_only);
            }
            if kind == EntryKind::Folder && !self.walk_all(&path, rest, folder_only) {
                return false;
            }
        }
        true
    }

    /// Returns true if a pattern matches a name. Counts the steps of the match.
    fn is_match(&mut self, pattern: &Pattern, name: &str) -> bool {
        let mut matching = Matching::new(self.cache);
        let matches = pattern.matches(name, &mut matching).unwrap_or(false);
        self.steps += matching.steps();
        matches
    }

    fn is_within_limits(&self) -> bool {
        self.names_seen <= MAX_NAMES && self.steps <= MAX_STEPS
    }

    fn list(&self, path: &str) -> Option<Vec<(String, EntryKind)>> {
        let entries = self.files.list(&paths::absolute(self.cwd, path)).ok()?;
        Some(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
    }

    fn is_folder(&self, path: &str, kind: EntryKind) -> bool {
        match kind {
            EntryKind::Folder => true,
            EntryKind::Link => self
                .files
                .stat(&paths::absolute(self.cwd, path))
                .is_ok_and(|stat| stat.kind == EntryKind::Folder),
            _ => false,
        }
    }

    fn add(&mut self, path: &str, folder_only: bool) {
        if !folder_only {
            self.found.push(path.to_owned());
        } else if self
            .files
            .stat(&paths::absolute(self.cwd, path))
            .is_ok_and(|stat| stat.kind == EntryKind::Folder)
        {
            self.found.push(if path.ends_with('/') { path.to_owned() } else { format!("{path}/") });
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() || path.ends_with('/') {
        format!("{path}{name}")
    } else {
        format!("{path}/{name}")
    }
}
