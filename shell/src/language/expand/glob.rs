//! Globbing: the files of the run that a pattern names, in the order of their bytes.

use std::sync::Arc;

use wattle_capability::files::{EntryKind, Files};

use crate::language::interpreter::{Flow, Interpreter};
use crate::language::paths;
use crate::language::pattern::{self, Cache, Fragment, Pattern};

/// The most names that a pattern may look at.
const LOOKS: usize = 200_000;

/// How names are matched.
#[derive(Clone, Copy)]
struct How {
    extended: bool,
    fold: bool,
    dots: bool,
    stars: bool,
}

/// One name of a path that is looked for.
enum Step {
    Name(String),
    Match {
        pattern: Pattern,
        dot: bool,
    },
    /// `**`
    Folders,
}

impl Interpreter {
    /// The paths that a field names, sorted; none where nothing matches.
    pub(super) async fn glob(&mut self, field: &[Fragment], extended: bool) -> Flow<Vec<String>> {
        let how =
            How { extended, fold: self.options.nocaseglob, dots: self.options.dotglob, stars: self.options.globstar };
        let steps = steps(field, how);
        let absolute = field.first().is_some_and(|run| run.text.starts_with('/'));
        let folder_only = field.last().is_some_and(|run| run.text.ends_with('/'));
        let run = self.run.clone();
        let cwd = self.folders.current.clone();
        let look = move || {
            let mut search =
                Search { files: &run.files, cache: &run.patterns, cwd: &cwd, how, looks: 0, found: Vec::new() };
            let start = if absolute { "/" } else { "" };
            let whole = search.walk(start, &steps, folder_only);
            search.found.sort_unstable();
            search.found.dedup();
            (search.found, whole)
        };
        let looked = if self.run.files.is_memory() { Ok(look()) } else { tokio::task::spawn_blocking(look).await };
        match looked {
            Ok((found, true)) => Ok(found),
            Ok((_, false)) => {
                Err(self.exceed(format!("a pattern looked at more than {LOOKS} names: name the folder more closely")))
            }
            Err(_) => Ok(Vec::new()),
        }
    }
}

fn steps(field: &[Fragment], how: How) -> Vec<Step> {
    let mut names: Vec<Vec<Fragment>> = vec![Vec::new()];
    for run in field {
        for (place, piece) in run.text.split('/').enumerate() {
            if place > 0 {
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
            [run] if how.stars && run.text == "**" && !run.quoted => Step::Folders,
            fragments if pattern::is_special(fragments, how.extended) => {
                let dot = fragments.first().is_some_and(|run| run.text.starts_with('.'));
                Step::Match { pattern: Pattern::new(fragments, how.extended, how.fold), dot }
            }
            _ => Step::Name(super::fields::text(name)),
        })
        .collect()
}

struct Search<'a> {
    files: &'a Arc<Files>,
    cache: &'a Cache,
    cwd: &'a str,
    how: How,
    looks: usize,
    found: Vec<String>,
}

impl Search<'_> {
    /// Follows the steps from a path; false where that took too much.
    fn walk(&mut self, path: &str, steps: &[Step], folder_only: bool) -> bool {
        let Some((step, rest)) = steps.split_first() else {
            self.add(path, folder_only);
            return true;
        };
        match step {
            Step::Name(name) => {
                let path = joined(path, name);
                // Nothing below a name that is not there.
                self.files.stat_link(&paths::absolute(self.cwd, &path)).is_err() || self.walk(&path, rest, folder_only)
            }
            Step::Match { pattern, dot } => self.list(path).is_none_or(|names| {
                names.into_iter().all(|(name, kind)| {
                    self.looks += 1;
                    let hidden = name.starts_with('.') && !dot && !self.how.dots;
                    if hidden || !pattern.matches(&name, self.cache).unwrap_or(false) {
                        return self.looks <= LOOKS;
                    }
                    let path = joined(path, &name);
                    let on = rest.is_empty() && !folder_only || self.is_folder(&path, kind);
                    self.looks <= LOOKS && (!on || self.walk(&path, rest, folder_only))
                })
            }),
            Step::Folders => self.folders(path, rest, folder_only),
        }
    }

    /// `**`: this folder and all below it; at the end of a pattern files as well.
    fn folders(&mut self, path: &str, rest: &[Step], folder_only: bool) -> bool {
        if !rest.is_empty() && !self.walk(path, rest, folder_only) {
            return false;
        }
        let Some(names) = self.list(path) else { return true };
        for (name, kind) in names {
            self.looks += 1;
            if self.looks > LOOKS {
                return false;
            }
            if name.starts_with('.') && !self.how.dots {
                continue;
            }
            let path = joined(path, &name);
            if rest.is_empty() {
                self.add(&path, folder_only);
            }
            if kind == EntryKind::Folder && !self.folders(&path, rest, folder_only) {
                return false;
            }
        }
        true
    }

    fn list(&self, path: &str) -> Option<Vec<(String, EntryKind)>> {
        let entries = self.files.list(&paths::absolute(self.cwd, path)).ok()?;
        Some(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
    }

    fn is_folder(&self, path: &str, kind: EntryKind) -> bool {
        match kind {
            EntryKind::Folder => true,
            EntryKind::Link => {
                self.files.stat(&paths::absolute(self.cwd, path)).is_ok_and(|stat| stat.kind == EntryKind::Folder)
            }
            _ => false,
        }
    }

    fn add(&mut self, path: &str, folder_only: bool) {
        if !folder_only {
            self.found.push(path.to_owned());
        } else if self.files.stat(&paths::absolute(self.cwd, path)).is_ok_and(|stat| stat.kind == EntryKind::Folder) {
            self.found.push(if path.ends_with('/') { path.to_owned() } else { format!("{path}/") });
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() || path.ends_with('/') { format!("{path}{name}") } else { format!("{path}/{name}") }
}
