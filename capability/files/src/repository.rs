//! Repositories, which belong to the host: what one holds can make `git` start programs.
//!
//! One is a folder named `.git`, however that is spelled, or any folder with a repository's layout, which `git` takes for a bare
//! one. A run writes neither into such a folder, nor anything that would make one.

use super::base::Found;
use super::error::{FilesError, Intent};
use super::layer::{Body, Layer};
use super::path::RunPath;
use super::view::Store;

/// Names that lie in a repository: those that its layout is made of, and those that can make `git` do something.
const NAMES: &[&str] = &[
    "HEAD",
    "objects",
    "refs",
    "commondir",
    "gitdir",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "worktrees",
    "packed-refs",
    "reftable",
    "shallow",
];

/// Characters that some file systems leave out of names when they compare them.
const IGNORED: &[std::ops::RangeInclusive<char>] =
    &['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}', '\u{feff}'..='\u{feff}'];

/// Whether a path is, or lies in, a folder named as a repository's is.
pub(super) fn is_inside(path: &RunPath) -> bool {
    path.names().any(is_repository)
}

/// Whether some file system takes a name for [`REPOSITORY`](super::REPOSITORY): in letters of any case, with characters that do not
/// count, by its short form, or with what names a part of a file.
fn is_repository(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !IGNORED.iter().any(|range| range.contains(c))).collect();
    let plain = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    plain.eq_ignore_ascii_case(super::REPOSITORY) || plain.eq_ignore_ascii_case("git~1")
}

impl Store {
    /// Refuses to write at a path that lies in a repository, or that would complete the layout of one.
    pub(super) fn check_repository(&self, path: &RunPath) -> Result<(), FilesError> {
        if is_inside(path) || self.completes_repository(path)? {
            return Err(FilesError::repository(path));
        }
        Ok(())
    }

    /// Whether a folder on this path would have a repository's layout once the path is there. Looks only where a name on the path
    /// is one that lies in a repository.
    pub(super) fn completes_repository(&self, path: &RunPath) -> Result<bool, FilesError> {
        for step in path.steps() {
            let Some((folder, name)) = step.split() else { continue };
            if !NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                continue;
            }
            let has = |wanted: &str| Ok(name.eq_ignore_ascii_case(wanted) || self.has(&folder, wanted)?);
            if has("HEAD")? && (has("commondir")? || (has("objects")? && has("refs")?)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a folder has an entry of that name, in letters of any case where the overlay has it. What the overlay hides counts,
    /// too: the base has it until changes are carried out, and while they are.
    fn has(&self, folder: &RunPath, wanted: &str) -> Result<bool, FilesError> {
        if let Store::Overlay { layer, .. } = self
            && in_layer(layer, folder, wanted)
        {
            return Ok(true);
        }
        let Some(base) = self.base() else { return Ok(false) };
        let path = folder.join(wanted).map_err(|fault| FilesError::path(Intent::Write, folder.as_str(), fault))?;
        match base.look(&path).map_err(|cause| FilesError::io(Intent::Write, &path, cause)) {
            Ok(found) => Ok(found != Found::Absent),
            // A link took the place of the folder: the path is resolved again, or leads into the overlay alone.
            Err(error) if error.is_raced() && matches!(self, Store::Through { .. }) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

fn in_layer(layer: &Layer, folder: &RunPath, wanted: &str) -> bool {
    let Some(Body::Folder(folder)) = layer.node(folder).map(|node| &node.body) else { return false };
    let mut there = folder.children.iter().filter(|(_, node)| !matches!(node.body, Body::Gone));
    there.any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repositorys_folder_is_known_in_every_spelling() {
        for name in
            [".git", ".GIT", ".Git", ".git.", ".git ", ".git . .", "git~1", "GIT~1", ".g\u{200c}it", ".git\u{feff}"]
        {
            assert!(is_repository(name), "{name:?}");
        }
        for name in [".git::$INDEX_ALLOCATION", ".git:x"] {
            assert!(is_repository(name), "{name:?}");
        }
        for name in [".gitignore", ".gitattributes", "git", "git~2", "a.git", ".gitx", ".github", ""] {
            assert!(!is_repository(name), "{name:?}");
        }
    }
}
