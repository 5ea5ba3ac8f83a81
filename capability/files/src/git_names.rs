//! Recognition of names that a file system may treat as [`REPOSITORY`].

use crate::REPOSITORY;
use crate::path::RunPath;

/// Characters that some file systems ignore when they compare names.
const IGNORED: &[std::ops::RangeInclusive<char>] = &[
    '\u{200c}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{206a}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
];

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

/// Returns true if a name in the path is [`REPOSITORY`], in any spelling.
pub(crate) fn path_is_in_repository(path: &RunPath) -> bool {
    path.names().any(is_repository)
}

/// Returns true if any file system treats a name as [`REPOSITORY`]: in any letter case, with
/// ignorable characters, as its short name, or with the name of an alternate data stream.
#[must_use]
pub fn is_repository(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !IGNORED.iter().any(|range| range.contains(c))).collect();
    let plain = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    plain.eq_ignore_ascii_case(REPOSITORY) || plain.eq_ignore_ascii_case("git~1")
}

/// Returns true if a folder has the layout by which `git` recognizes a repository. `has` returns
/// true if the folder contains an entry with the given name.
///
/// # Errors
/// The first error that `has` returns.
///
/// ```
/// use wattle_files::has_repository_layout;
/// let entries = ["HEAD", "objects", "refs", "config"];
/// assert_eq!(has_repository_layout(|name| Ok::<_, ()>(entries.contains(&name))), Ok(true));
/// assert_eq!(has_repository_layout(|name| Ok::<_, ()>(name == "HEAD")), Ok(false));
/// ```
pub fn has_repository_layout<E>(has: impl Fn(&str) -> Result<bool, E>) -> Result<bool, E> {
    Ok(has("HEAD")? && (has("commondir")? || (has("objects")? && has("refs")?)))
}

/// Returns true if a name, in any letter case, is one of the names of entries in a repository.
pub(crate) fn is_repository_part(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true if a folder on the path would have the layout of a repository once the path exists.
/// `has` returns true if a folder contains an entry with the given name. It is asked only about
/// folders for which the path has a name that is part of a repository.
pub(crate) fn completes_layout<E>(
    path: &RunPath,
    has: impl Fn(&RunPath, &str) -> Result<bool, E>,
) -> Result<bool, E> {
    for step in path.steps() {
        let Some((folder, name)) = step.split() else { continue };
        if !is_repository_part(name) {
            continue;
        }
        let has_part = |part: &str| match name.eq_ignore_ascii_case(part) {
            true => Ok(true),
            false => has(&folder, part),
        };
        if has_repository_layout(has_part)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repositorys_folder_is_recognized_in_every_spelling() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git ",
            ".git . .",
            "git~1",
            "GIT~1",
            ".g\u{200c}it",
            ".git\u{feff}",
        ] {
            assert!(is_repository(name), "{name:?}");
        }
        for name in [".git::$INDEX_ALLOCATION", ".git:x"] {
            assert!(is_repository(name), "{name:?}");
        }
        for name in
            [".gitignore", ".gitattributes", "git", "git~2", "a.git", ".gitx", ".github", ""]
        {
            assert!(!is_repository(name), "{name:?}");
        }
    }
}
