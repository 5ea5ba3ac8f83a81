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
