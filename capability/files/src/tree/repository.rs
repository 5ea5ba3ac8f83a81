//! Protection of repositories, whose content can make `git` start programs.
//!
//! A repository is a folder named `.git`, in any spelling, or any folder with the layout of a
//! repository, which `git` accepts as a bare repository. A run can neither write into such a folder
//! nor write anything that would complete one.

use super::Tree;
use crate::error::FilesError;
use crate::git_names::{has_repository_layout, path_is_in_repository};
use crate::path::RunPath;

/// Names of entries in a repository: those that form its layout, and those that can change what
/// `git` does.
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

/// Rejects a write to a path that is in a repository, or that would complete the layout of one.
pub(super) fn check(tree: &dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    if path_is_in_repository(path) || completes_layout(tree, path)? {
        return Err(FilesError::repository(path));
    }
    Ok(())
}

/// Returns true if a folder on the path would have the layout of a repository once the path exists.
/// Queries the tree only for names that are part of a repository's layout.
pub(crate) fn completes_layout(tree: &dyn Tree, path: &RunPath) -> Result<bool, FilesError> {
    for step in path.steps() {
        let Some((folder, name)) = step.split() else { continue };
        if !NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            continue;
        }
        let has = |part: &str| {
            Ok(name.eq_ignore_ascii_case(part) || tree.has_repository_part(&folder, part)?)
        };
        if has_repository_layout(has)? {
            return Ok(true);
        }
    }
    Ok(false)
}
