//! The operations that carrying changes out is made of. The base has them on the disk; tests have them in memory, where somebody
//! else acts between any two, and where the process can end at each.

use std::io::{self, Read, Write as _};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::base::{Base, Found};
use super::disk::MODE;
use super::jail::{PLAIN, is_absent, plain_meta};
use super::path::RunPath;
use super::stamp::{FileStamp, Stamp};

/// The size of a file, in bytes, above which its content is not compared. Its number, size and times are.
pub(super) const COMPARED: u64 = 64 << 20;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    /// A plain file, with its permissions.
    File(FileStamp, u32),
    Folder,
    Link(String),
    Other,
}

/// A tree of files, and what can be done to it in one step each. No operation follows a link, and none replaces an entry but
/// [`Disk::exchange`], which loses nothing.
pub(super) trait Disk {
    /// Looks at an entry.
    fn state(&self, path: &RunPath) -> io::Result<State>;
    /// Hashes the content of a file; `None` for one above [`COMPARED`] bytes.
    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>>;
    /// Hashes a folder with all that it holds, as [`Stamp::Tree`] does.
    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash>;
    /// Returns the names in a folder.
    fn names(&self, path: &RunPath) -> io::Result<Vec<String>>;
    /// Reads a small file of the host's own.
    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>>;
    /// Checks that a file may be written.
    fn check_writable(&self, path: &RunPath) -> io::Result<()>;
    /// Returns a name of the host's own for what is to be at `path` later, on the same file system.
    fn staging(&self, working: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath>;
    /// Makes a whole file where nothing is. By then its content is on the disk.
    fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()>;
    /// Makes a link where nothing is.
    fn link(&self, path: &RunPath, target: &str) -> io::Result<()>;
    /// Makes a folder; one that is there already is fine.
    fn make_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Moves an entry to where nothing is.
    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()>;
    /// Exchanges two entries.
    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()>;
    /// Removes a file or a link.
    fn unlink(&self, path: &RunPath) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Waits until the names of a folder are on the disk.
    fn sync(&self, folder: &RunPath) -> io::Result<()>;

    /// Whether the entry is as it was seen.
    fn is_still(&self, path: &RunPath, seen: &Stamp) -> io::Result<bool> {
        Ok(match (seen, self.state(path)?) {
            (Stamp::Absent, State::Absent) | (Stamp::Folder, State::Folder) | (Stamp::Other, State::Other) => true,
            (Stamp::File(seen), State::File(now, _)) => *seen == now,
            (Stamp::Link(seen), State::Link(now)) => *seen == now,
            (Stamp::Tree(seen), State::Folder) => self.tree(path)? == *seen,
            _ => false,
        })
    }
}

impl Disk for Base {
    fn state(&self, path: &RunPath) -> io::Result<State> {
        let meta = match self.jail.meta(path) {
            Err(cause) if is_absent(&cause) => return Ok(State::Absent),
            looked => looked?,
        };
        Ok(match meta.kind {
            FileType::RegularFile => State::File(FileStamp::of(&meta), meta.mode & MODE),
            FileType::Directory => State::Folder,
            FileType::Symlink => match self.link_target(path).map(String::from_utf8)? {
                Ok(target) => State::Link(target),
                Err(_) => State::Other,
            },
            _ => State::Other,
        })
    }

    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>> {
        let file = self.jail.open_entry(path, OFlags::RDONLY | PLAIN, Mode::empty())?;
        if plain_meta(&file)?.size > COMPARED {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let read = io::copy(&mut std::fs::File::from(file).take(COMPARED + 1), &mut hasher)?;
        Ok((read <= COMPARED).then(|| hasher.finalize()))
    }

    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash> {
        self.tree_hash(path).map_err(io::Error::other)
    }

    fn names(&self, path: &RunPath) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(self.jail.listing(path)?)? {
            match entry?.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) => names.push(name.to_owned()),
                Err(_) => return Err(Errno::ILSEQ.into()),
            }
        }
        Ok(names)
    }

    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>> {
        const MOST: u64 = 64 << 20;
        let file = self.jail.open_entry(path, OFlags::RDONLY | PLAIN, Mode::empty())?;
        plain_meta(&file)?;
        let mut data = Vec::new();
        std::fs::File::from(file).take(MOST).read_to_end(&mut data)?;
        Ok(data)
    }

    fn check_writable(&self, path: &RunPath) -> io::Result<()> {
        self.open_to_write(path, OFlags::empty()).map(drop)
    }

    fn staging(&self, working: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath> {
        super::working::staging(self, working, number, path)
    }

    fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()> {
        // A name of the host's own is nobody's business: its file need not appear as a whole.
        if !self.kept.hides_path(path) {
            return Base::create(self, path, data, mode);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
        let mut file = std::fs::File::from(self.jail.open_entry(path, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(data)?;
        mode.map_or(Ok(()), |mode| super::disk::set_mode(&file, mode))?;
        Ok(rustix::fs::fsync(&file)?)
    }

    fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        Base::link(self, path, target)
    }

    fn make_folder(&self, path: &RunPath) -> io::Result<()> {
        self.create_folder(path)
    }

    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        Base::rename_new(self, from, to)
    }

    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        Base::exchange(self, one, other)
    }

    fn unlink(&self, path: &RunPath) -> io::Result<()> {
        self.remove(path, &Found::Other("an entry"))
    }

    fn remove_folder(&self, path: &RunPath) -> io::Result<()> {
        self.remove(path, &Found::Folder { modified: None })
    }

    fn sync(&self, folder: &RunPath) -> io::Result<()> {
        self.sync_folder(folder)
    }
}
