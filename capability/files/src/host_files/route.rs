//! The paths under which the host can reach one of its own files.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links that are followed on the path of one of the host's own files. Linux has
/// the same limit.
const MAX_LINKS: usize = 40;

/// The route from the root of the host's file system to a file.
#[derive(Default)]
pub(super) struct Route {
    /// The absolute paths of the file: as written, after each link that is followed, and resolved.
    pub(super) paths: Vec<PathBuf>,
    /// The links on the route, and the folders that a `..` leaves. If one of these entries is
    /// replaced, the path leads to a different file.
    pub(super) passed: Vec<PathBuf>,
}

impl Route {
    /// Finds the route to a file, which need not exist.
    pub(super) fn to(path: &Path) -> Route {
        let Ok(path) = std::path::absolute(path) else { return Route::default() };
        let mut route = Route::default();
        let end = route.follow(&path);
        route.add(end);
        // The operating system may spell names differently, for example in another case.
        route.add(with_real_parents(&path));
        if let Ok(real) = path.canonicalize() {
            route.add(real);
        }
        route
    }

    /// Follows all links on an absolute path and returns the resulting path.
    fn follow(&mut self, path: &Path) -> PathBuf {
        let mut at = PathBuf::new();
        let mut rest = path.to_owned();
        let mut links = 0;
        while let Some((first, after)) = split_first(&rest) {
            if first == ".." {
                self.passed.push(at.clone());
                at.pop();
            }
            if first == "." || first == ".." {
                rest = after;
                continue;
            }
            let next = at.join(first);
            rest = match std::fs::read_link(&next) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    self.add_link(next, &after);
                    target.join(after)
                }
                _ => {
                    at = next;
                    after
                }
            };
        }
        at
    }

    /// Adds a link on the route. `rest` leads from the link to the file. If `rest` contains `..`,
    /// the link followed by `rest` is not added to the paths of the file, because `..` would be
    /// relative to the target of the link.
    fn add_link(&mut self, link: PathBuf, rest: &Path) {
        if !rest.components().any(|part| part == Component::ParentDir) {
            self.add(link.join(rest));
        }
        self.passed.push(link);
    }

    fn add(&mut self, path: PathBuf) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }
}

/// Splits a path into its first component and the rest, or returns `None` if it is empty.
fn split_first(path: &Path) -> Option<(OsString, PathBuf)> {
    let mut parts = path.components();
    let first = parts.next()?;
    Some((first.as_os_str().to_owned(), parts.as_path().to_owned()))
}

/// Canonicalizes the nearest existing ancestor of an absolute path and returns the resulting path.
fn with_real_parents(path: &Path) -> PathBuf {
    let real = path
        .ancestors()
        .skip(1)
        .find_map(|above| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?)));
    real.unwrap_or_else(|| path.to_owned())
}
