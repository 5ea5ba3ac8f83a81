//! Preparation of the paths of files that an evaluation writes. Links in these paths are rejected.
//!
//! A suite may come from a stranger's repository, and a model determines the text of a recording.
//! If links were followed, a link in the suite could overwrite any of the user's files with that
//! text.

use std::io;
use std::path::Path;

/// Creates the missing parent folders of `file`, which is under the folder `top`.
///
/// # Errors
/// If the file, or a folder between `top` and the file, is a link, or if a folder cannot be
/// created.
pub(crate) fn prepare(top: &Path, file: &Path) -> io::Result<()> {
    let below = file.ancestors().take_while(|path| *path != top);
    let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if let Some(link) = below.collect::<Vec<_>>().into_iter().rev().find(is_link) {
        let message = format!("`{}` is a link: remove it, or name another folder", link.display());
        return Err(io::Error::other(message));
    }
    file.parent().map_or(Ok(()), std::fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_file_is_written_through_a_link_in_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let (top, elsewhere) = (place.path().join("suite"), place.path().join("elsewhere"));
        std::fs::create_dir_all(top.join("recordings/some-model")).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, top.join("linked")).unwrap();
        symlink(elsewhere.join("missing"), top.join("recordings/some-model/a.jsonl")).unwrap();

        for file in ["linked/a.jsonl", "linked/deeper/a.jsonl", "recordings/some-model/a.jsonl"] {
            let error = prepare(&top, &top.join(file)).unwrap_err().to_string();
            assert!(error.ends_with("is a link: remove it, or name another folder"), "{error}");
        }
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
        prepare(&top, &top.join("recordings/other/text/b.jsonl")).unwrap();
        assert!(top.join("recordings/other/text").is_dir());
    }

    #[test]
    fn the_folder_itself_may_be_a_link() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("real")).unwrap();
        symlink("real", place.path().join("top")).unwrap();
        let top = place.path().join("top");

        prepare(&top, &top.join("a/b.txt")).unwrap();
        assert!(place.path().join("real/a").is_dir());
    }
}
