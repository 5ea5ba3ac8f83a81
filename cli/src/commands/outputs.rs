//! The files that a command writes for its user: artifacts, and the answer.
//!
//! A program or a model determines the content of these files, and may also have created files and
//! links in the output folder. The folder is therefore opened before the run. Each file is created
//! in the open folder under a temporary name and then renamed. An existing link is replaced and
//! never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use wattle_agent::host::capability::files::{HostPaths, has_repository_layout, is_repository};
use wattle_agent::host::journal;

use crate::config::Config;
use crate::fault::Fault;
use crate::setup::host_files;

/// Flags for opening a folder.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder that a command writes files to.
pub(crate) struct OutputFolder {
    folder: OwnedFd,
    /// The path as the user wrote it.
    path: PathBuf,
    /// The absolute path without links.
    real: PathBuf,
    protected: HostPaths,
}

impl OutputFolder {
    /// Opens a folder for artifacts and creates it if it is missing.
    ///
    /// # Errors
    /// If the folder is a link or is protected, or cannot be created.
    pub(super) fn for_artifacts(path: &Path, config: &Config) -> Result<OutputFolder, Fault> {
        let mut folder = OutputFolder::open(path, true).map_err(|error| {
            Fault::usage(format!("failed to open the folder `{}`: {error}", path.display()))
                .hint("choose another `--artifacts DIR`")
        })?;
        folder.protected = protected(config);
        let Some(why) = folder.refusal(OsStr::new("artifact")) else { return Ok(folder) };
        let message = format!("failed to use the folder `{}`: {why}", path.display());
        Err(Fault::usage(message).hint("choose another `--artifacts DIR`"))
    }

    /// Opens a folder. If `creates` is true, creates the missing folders in its path. Fails if the
    /// path contains a link after the start folder that [`split`] returns.
    fn open(path: &Path, creates: bool) -> io::Result<OutputFolder> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let (start, rest) = split(path)?;
        if creates {
            std::fs::create_dir_all(&start)?;
        }
        let mut folder = rustix::fs::open(&start, FOLDER, Mode::empty())?;
        for name in rest.components() {
            folder = open_next(&folder, name.as_os_str(), creates)?;
        }
        let (path, real) = (path.to_owned(), path.canonicalize()?);
        Ok(OutputFolder { folder, path, real, protected: HostPaths::default() })
    }

    /// Returns the absolute path of a file in the folder. A command that declares this path in
    /// `Needs::writes` may write to the whole folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.real.join(name)
    }

    /// Writes artifacts. Replaces existing files and links with the same names. An artifact that
    /// cannot be written does not prevent the others from being written.
    ///
    /// # Errors
    /// If a file is protected or cannot be written. The error names all such files.
    pub(super) fn write_all<'a>(
        &self,
        artifacts: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<(), Fault> {
        let failed: Vec<String> = artifacts
            .filter_map(|(name, data)| {
                let error = self.write(OsStr::new(name), data).err()?;
                let path = self.path.join(name);
                Some(format!("failed to write `{}`: {error}", path.display()))
            })
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(Fault::failed(failed.join("\n"))) }
    }

    /// Writes a new file and renames it to `name`. An existing file or link with this name is
    /// replaced.
    fn write(&self, name: &OsStr, data: &[u8]) -> io::Result<()> {
        if let Some(why) = self.refusal(name) {
            return Err(io::Error::other(why));
        }
        let mode = self.mode(name)?;
        let draft = format!(".wattle-{}.unfinished", journal::new_id());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = Mode::from_raw_mode(0o666);
        let file = rustix::fs::openat(&self.folder, draft.as_str(), flags, new)?;
        let written = fill(file.into(), data, mode).and_then(|()| {
            Ok(rustix::fs::renameat(&self.folder, draft.as_str(), &self.folder, name)?)
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, draft.as_str(), AtFlags::empty());
        }
        written
    }

    /// Returns the permissions of an existing file, which the new file inherits. Returns `None` if
    /// there is no such file, or if it is a link.
    fn mode(&self, name: &OsStr) -> io::Result<Option<Mode>> {
        let stat = match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Ok(None),
            FileType::RegularFile => {
                let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777);
                if mode.contains(Mode::WUSR) {
                    Ok(Some(mode))
                } else {
                    Err(io::ErrorKind::PermissionDenied.into())
                }
            }
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Returns the reason why a file with this name may not be written, or `None` if it may.
    fn refusal(&self, name: &OsStr) -> Option<&'static str> {
        // The artifacts of a resumed run come from its record, in which a name could be any path.
        if !Path::new(name).components().eq([Component::Normal(name)]) {
            return Some("it is not the name of a file");
        }
        let path = self.real.join(name);
        let is_git = |name: &OsStr| name.to_str().is_some_and(is_repository);
        if path.iter().any(is_git) || self.completes_repository(name) {
            return Some("it is in a Git repository's own folder");
        }
        self.protected.refusal(&path)
    }

    /// Returns true if the folder is in a bare repository, or if adding this file would make the
    /// folder a bare repository.
    fn completes_repository(&self, name: &OsStr) -> bool {
        let has = |part: &str| {
            name.eq_ignore_ascii_case(part)
                || rustix::fs::statat(&self.folder, part, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        let above = |folder: &Path| is_layout(|part| folder.join(part).exists());
        is_layout(has) || self.real.ancestors().skip(1).any(above)
    }
}

/// Returns the files that a command never writes on behalf of a program or a model.
fn protected(config: &Config) -> HostPaths {
    host_files(config).locate(&config.root.value)
}

/// The file that the answer is written to, in its open folder.
pub(crate) struct OutputFile {
    folder: OutputFolder,
    name: OsString,
    /// The path as the user wrote it.
    path: PathBuf,
}

impl OutputFile {
    /// Opens the folder of a file and checks that the file can be written. Changes nothing.
    ///
    /// # Errors
    /// If the file or its folder is a link, if the folder does not exist, or if the file is not a
    /// regular file or cannot be written.
    pub(super) fn open(path: &Path) -> Result<OutputFile, Fault> {
        OutputFile::opened(path).map_err(|error| {
            Fault::usage(format!("failed to write `{}`: {error}", path.display()))
                .hint("choose another `--output FILE`, or omit it to print the answer")
        })
    }

    fn opened(path: &Path) -> io::Result<OutputFile> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = OutputFolder::open(folder, false)?;
        if is_link(&folder.folder, name) {
            return Err(io::Error::other("it is a link"));
        }
        folder.mode(name)?;
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&folder.folder, ".", access, AtFlags::empty())?;
        Ok(OutputFile { folder, name: name.to_owned(), path: path.to_owned() })
    }

    /// Stores the protected files of these settings and checks that the output file is not one of
    /// them.
    ///
    /// # Errors
    /// If the output file is protected.
    pub(super) fn protect(&mut self, config: &Config) -> Result<(), Fault> {
        self.folder.protected = protected(config);
        let Some(why) = self.folder.refusal(&self.name) else { return Ok(()) };
        let message = format!("failed to write `{}`: {why}", self.path.display());
        Err(Fault::usage(message).hint("choose another `--output FILE`"))
    }

    /// Returns the path as the user wrote it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the absolute path of the file.
    pub(super) fn real(&self) -> PathBuf {
        self.folder.real.join(&self.name)
    }

    /// Writes the file. Replaces an existing file or link.
    ///
    /// # Errors
    /// If the file is protected or cannot be written.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.folder.write(&self.name, text.as_bytes())
    }
}

/// Splits a path into a start folder and a relative path. The path of the start folder may contain
/// links, but the relative path may not. The start folder is the current folder if the path is
/// relative or inside the current folder. For any other path, the start folder is the parent
/// folder.
fn split(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    if path.is_relative() {
        return Ok((PathBuf::from("."), path.to_owned()));
    }
    let here = std::env::current_dir()?;
    if let Ok(rest) = path.strip_prefix(&here) {
        return Ok((here, rest.to_owned()));
    }
    Ok(match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (parent.to_owned(), PathBuf::from(name)),
        _ => (path.to_owned(), PathBuf::new()),
    })
}

/// Opens the folder `name` inside an open folder. If `creates` is true, creates the folder if it is
/// missing.
fn open_next(folder: &OwnedFd, name: &OsStr, creates: bool) -> io::Result<OwnedFd> {
    if creates {
        match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    match rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(next) => Ok(next),
        Err(Errno::LOOP | Errno::NOTDIR) if is_link(folder, name) => {
            Err(io::Error::other(format!("`{}` is a link", name.display())))
        }
        Err(errno) => Err(errno.into()),
    }
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Writes the content of a new file and sets its permissions.
fn fill(mut file: File, data: &[u8], mode: Option<Mode>) -> io::Result<()> {
    file.write_all(data)?;
    Ok(mode.map_or(Ok(()), |mode| rustix::fs::fchmod(&file, mode))?)
}

/// Returns true if a folder has the layout of a repository. `has` tests whether the folder contains
/// a given name.
fn is_layout(has: impl Fn(&str) -> bool) -> bool {
    has_repository_layout(|part| Ok::<_, std::convert::Infallible>(has(part))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_of_a_file_in_the_folder_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("out");
        let folder = OutputFolder::open(&top, true).unwrap();
        let absolute = dir.path().join("absolute");
        for name in ["../up", "a/b", "a/", "/", ".", "..", "", absolute.to_str().unwrap()] {
            let error = folder.write(OsStr::new(name), b"x").unwrap_err().to_string();
            assert_eq!(error, "it is not the name of a file", "{name:?}");
        }
        let artifacts = [("a.txt", b"1"), ("../b.txt", b"2"), ("c.txt", b"3")];
        let written = folder.write_all(artifacts.iter().map(|(name, data)| (*name, &data[..])));
        assert!(written.unwrap_err().to_string().contains("b.txt"));
        let mut names: Vec<_> =
            std::fs::read_dir(&top).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.txt", "c.txt"]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
