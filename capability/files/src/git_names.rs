//! Recognizes names that a file system may treat as equal to another name, such as [`REPOSITORY`].

use crate::REPOSITORY;
use crate::path::RunPath;

/// Characters that some file systems ignore when they compare names: those that Unicode calls
/// default-ignorable.
const IGNORED: &[std::ops::RangeInclusive<char>] = &[
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fff8}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
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
    let plain = plain(name);
    plain == REPOSITORY || plain == "git~1"
}

/// Returns true if any file system treats `name` as the name `known`: in any letter case, with
/// ignorable characters, or with the name of an alternate data stream.
pub(crate) fn is_named(name: &str, known: &str) -> bool {
    plain(name).eq_ignore_ascii_case(known)
}

/// Returns the name under which a tolerant file system stores `name`, in lower case.
pub(crate) fn plain(name: &str) -> String {
    let shown: String =
        name.chars().filter(|c| !IGNORED.iter().any(|range| range.contains(c))).collect();
    let stored = shown.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    stored.to_ascii_lowercase()
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

/// Returns true if a name, in any spelling, is one of the names of entries in a repository.
pub(crate) fn is_repository_part(name: &str) -> bool {
    let plain = plain(name);
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(&plain))
}

/// Returns true if a folder on the path would have the layout of a repository once the path exists.
/// `has` returns true if a folder contains an entry with the given name. It is called only for a
/// folder in which the path's next name is that of an entry in a repository.
pub(crate) fn completes_layout<E>(
    path: &RunPath,
    has: impl Fn(&RunPath, &str) -> Result<bool, E>,
) -> Result<bool, E> {
    for step in path.steps() {
        let Some((folder, name)) = step.split() else { continue };
        if !is_repository_part(name) {
            continue;
        }
        let has_part =
            |part: &str| if is_named(name, part) { Ok(true) } else { has(&folder, part) };
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
            ".gi\u{200b}t",
            ".\u{ad}git",
            ".git\u{fe0f}",
            ".git\u{e0020}",
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
        for name in ["HEAD", "head", "He\u{2060}ad", "refs.", "refs ", "objects::$DATA"] {
            assert!(is_repository_part(name), "{name:?}");
        }
        for name in ["heads", "ref", "re.fs", "", "."] {
            assert!(!is_repository_part(name), "{name:?}");
        }
    }
}
