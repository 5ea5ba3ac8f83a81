//! The files that an evaluation reads and writes.
//!
//! A suite may come from a stranger's repository. Only its regular files of limited size are read.
//! The paths of files to be written must not contain links. Otherwise, a link in the suite could
//! redirect a recording, whose text a model determines, to any of the user's files.

use std::io;
use std::path::Path;

use wattle_agent::host::capability::files::read_regular_file;
use wattle_agent::host::rt::decode_text;

use crate::error::EvalError;

/// Reads a file as text. Returns `None` if it does not exist.
///
/// # Errors
/// If the file is not a regular file, has more than `max` bytes, is not UTF-8, or cannot be read.
pub(crate) fn read(path: &Path, max: u64) -> Result<Option<String>, EvalError> {
    let failed = |why: io::Error| EvalError::load(path, why);
    let Some(bytes) = read_regular_file(path, max).map_err(failed)? else { return Ok(None) };
    let text = decode_text(bytes).map_err(|_| EvalError::load(path, "it is not UTF-8"))?;
    Ok(Some(text))
}

/// Reads a file as text. Fails if it does not exist.
///
/// # Errors
/// The same as for [`read`].
pub(crate) fn read_existing(path: &Path, max: u64) -> Result<String, EvalError> {
    read(path, max)?.ok_or_else(|| EvalError::load(path, "it does not exist"))
}

/// Creates the missing parent folders of `file`, which is under the folder `top`.
///
/// # Errors
/// If the file, or a folder between `top` and the file, is a link, if the file exists but is not a
/// regular file, or if a folder cannot be created.
pub(crate) fn prepare(top: &Path, file: &Path) -> io::Result<()> {
    let below = file.ancestors().take_while(|path| *path != top);
    let is_link = |path: &&Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if let Some(link) = below.collect::<Vec<_>>().into_iter().rev().find(is_link) {
        let message = format!("`{}` is a link: remove it, or name another folder", link.display());
        return Err(io::Error::other(message));
    }
    // Writing to a FIFO would wait for a reader.
    if file.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.parent().map_or(Ok(()), std::fs::create_dir_all)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

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
        let _socket = UnixListener::bind(top.join("socket")).unwrap();
        let error = prepare(&top, &top.join("socket")).unwrap_err().to_string();
        assert_eq!(error, "it is not a regular file");
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
        prepare(&top, &top.join("recordings/other/text/b.jsonl")).unwrap();
        assert!(top.join("recordings/other/text").is_dir());
    }

    #[test]
    fn only_regular_files_of_limited_size_are_read_and_nothing_waits() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        assert!(read(&at("none"), 4).unwrap().is_none());
        std::fs::write(at("four"), "abcd").unwrap();
        symlink("four", at("link")).unwrap();
        assert_eq!(read_existing(&at("link"), 4).unwrap(), "abcd");
        std::fs::File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        std::fs::write(at("latin"), b"\xe9").unwrap();
        for (name, why) in [
            ("sparse", "larger than"),
            ("zero", "not a regular file"),
            (".", "not a regular file"),
            ("latin", "not UTF-8"),
        ] {
            let error = read(&at(name), 1024).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
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
