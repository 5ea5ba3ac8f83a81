//! The runs' versions of files whose changes could not be applied. They are stored in the user's
//! state folder, which every command may write to, even in the sandbox.

use std::path::{Path, PathBuf};

use wattle_agent::host::create_folder;
use wattle_agent::host::journal::new_id;

use crate::config::Places;

/// Maximum number of runs whose files are kept.
const MAX_RUNS: usize = 100;

/// Length of a folder's name, in characters. The name is an id.
const NAME_LENGTH: usize = 26;

/// Creates a private folder for the files of a run. Removes the folders of the oldest runs if there
/// are more than [`MAX_RUNS`] folders. Returns `None` if the user has no state folder.
///
/// # Errors
/// If the folder cannot be created.
pub(crate) fn create() -> std::io::Result<Option<PathBuf>> {
    let Some(top) = top() else { return Ok(None) };
    create_folder(&top)?;
    let folder = top.join(new_id());
    std::fs::create_dir(&folder)?;
    let all = folders_in(&top);
    for oldest in all.iter().take(all.len().saturating_sub(MAX_RUNS)) {
        // A folder that cannot be removed is left to the next run.
        drop(std::fs::remove_dir_all(oldest));
    }
    Ok(Some(folder))
}

/// Returns the folders of all runs, oldest first.
pub(crate) fn folders() -> Vec<PathBuf> {
    top().map(|top| folders_in(&top)).unwrap_or_default()
}

fn top() -> Option<PathBuf> {
    Places::of_user().state.map(|state| state.join("undone"))
}

fn folders_in(top: &Path) -> Vec<PathBuf> {
    let is_id =
        |name: &str| name.len() == NAME_LENGTH && name.chars().all(|c| c.is_ascii_alphanumeric());
    let entries = std::fs::read_dir(top).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.file_name().to_str().is_some_and(is_id)
    });
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    // An id begins with the time at which it was made.
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_runs_are_listed_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = ("01M8CX3RBEVZN463Q9S9KKKGR6", "01M8CX4RBEVZN463Q9S9KKKGR6");
        for name in [new, old, "notes", "01M8CX3RBEVZN463Q9S9KKKG-6"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("01M8CX5RBEVZN463Q9S9KKKGR6"), "a file").unwrap();
        assert_eq!(folders_in(dir.path()), [dir.path().join(old), dir.path().join(new)]);
        assert!(folders_in(&dir.path().join("none")).is_empty());
    }
}
