//! Reads files that an untrusted user may have created. Only regular files of limited size are
//! accepted, and reading never blocks.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use wattle_agent::host::capability::files::{read_open_file, read_regular_file};

/// Maximum size of a settings file, in bytes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// Reads the file `name` in a folder. Returns `None` if it is absent. Links in the path of the
/// folder are resolved, and the folder is opened. The file is then opened relative to the open
/// folder. A link in place of the file is never followed, even if it was created in the meantime.
///
/// # Errors
/// If the file is a link, a folder, a fifo, a socket or a device, if it is larger than `most`
/// bytes, or if it cannot be read. The error states the reason.
pub(crate) fn in_folder(folder: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = open_in_folder(folder, name)? else { return Ok(None) };
    read_open_file(&file, most).map(Some).map_err(|error| error.to_string())
}

/// The beginning of a file.
pub(crate) struct Beginning {
    /// The first bytes.
    pub(crate) bytes: Vec<u8>,
    /// If true, the file has more bytes.
    pub(crate) is_cut: bool,
}

/// Reads at most `most` bytes of the file `name` in a folder, like [`in_folder`].
///
/// # Errors
/// The same as for [`in_folder`], except that the file may be larger.
pub(crate) fn beginning_in_folder(
    folder: &Path,
    name: &str,
    most: u64,
) -> Result<Option<Beginning>, String> {
    let Some(file) = open_in_folder(folder, name)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    Ok(Some(Beginning { bytes, is_cut }))
}

/// Opens a regular file in a folder. Returns `None` if it is absent.
fn open_in_folder(folder: &Path, name: &str) -> Result<Option<File>, String> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
    let folder =
        match folder.canonicalize().map(|folder| rustix::fs::open(folder, flags, Mode::empty())) {
            Ok(Ok(folder)) => folder,
            Ok(Err(Errno::NOENT | Errno::NOTDIR)) => return Ok(None),
            Ok(Err(errno)) => return Err(io::Error::from(errno).to_string()),
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
    // Opening a device can have effects, so the type is checked first. It is checked again below,
    // because the file may have changed since.
    match rustix::fs::statat(&folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => require_regular(FileType::from_raw_mode(stat.st_mode))?,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(io::Error::from(errno).to_string()),
    }
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => {
            let stat =
                rustix::fs::fstat(&file).map_err(|errno| io::Error::from(errno).to_string())?;
            require_regular(FileType::from_raw_mode(stat.st_mode))?;
            Ok(Some(File::from(file)))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => require_regular(FileType::Symlink).map(|()| None),
        Err(errno) => Err(io::Error::from(errno).to_string()),
    }
}

/// Reads a file that belongs to the user and may be a link. Returns `None` if it is absent.
///
/// # Errors
/// The same as for [`in_folder`], except that the file may be a link.
pub(crate) fn of_user(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    read_regular_file(path, most).map_err(|error| error.to_string())
}

fn require_regular(kind: FileType) -> Result<(), String> {
    let what = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a link",
        FileType::Directory => "a folder",
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(format!("it is {what}, not a regular file"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_within_the_bound_are_read_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let read = |name: &str| in_folder(dir.path(), name, 4);
        assert_eq!(read("none"), Ok(None));
        std::fs::write(at("four"), "abcd").unwrap();
        assert_eq!(read("four"), Ok(Some(b"abcd".to_vec())));
        std::fs::write(at("five"), "abcde").unwrap();
        assert!(read("five").unwrap_err().contains("larger than"));
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert!(read("sparse").unwrap_err().contains("larger than"));
        symlink("four", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), Mode::RWXU).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (name, what) in [
            ("link", "a link"),
            ("dangling", "a link"),
            ("fifo", "a fifo"),
            ("folder", "a folder"),
            ("socket", "a socket"),
        ] {
            assert_eq!(
                read(name).unwrap_err(),
                format!("it is {what}, not a regular file"),
                "{name}"
            );
        }
        assert_eq!(in_folder(&at("gone"), "x", 4), Ok(None));
        assert_eq!(in_folder(&at("four"), "x", 4), Ok(None));
        assert_eq!(
            in_folder(Path::new("/dev"), "null", 4).unwrap_err(),
            "it is a device, not a regular file"
        );

        assert_eq!(of_user(&at("link"), 4), Ok(Some(b"abcd".to_vec())));
        assert_eq!(of_user(&at("dangling"), 4), Ok(None));
        assert_eq!(of_user(&at("fifo"), 4).unwrap_err(), "it is not a regular file");
        assert!(of_user(Path::new("/dev/zero"), 4).is_err());
    }
}
