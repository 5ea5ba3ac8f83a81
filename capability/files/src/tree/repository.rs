//! Protection of repositories, whose content can make `git` start programs.
//!
//! A repository is a folder named `.git`, in any spelling, or any folder with the layout of a
//! repository, which `git` accepts as a bare repository. A run can neither write into such a folder
//! nor write anything that would complete one.

use super::Tree;
use crate::error::FilesError;
use crate::git_names::{completes_layout, path_is_in_repository};
use crate::path::RunPath;

/// Rejects a write to a path that is in a repository, or that would complete the layout of one.
pub(super) fn check(tree: &dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    let has = |folder: &RunPath, part: &str| tree.has_repository_part(folder, part);
    if path_is_in_repository(path) || completes_layout(path, has)? {
        return Err(FilesError::repository(path));
    }
    Ok(())
}
