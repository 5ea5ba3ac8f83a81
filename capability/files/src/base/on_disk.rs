//! The primitive operations on disk.

use std::io::{self, Read, Write as _};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::primitives::{Disk, MAX_COMPARED};
use super::staging::staging_path;
use super::write::{INHERITED_MODE, set_mode};
use super::{Base, EntryInfo};
use crate::git_names::{completes_layout, path_is_in_repository};
use crate::jail::{NO_SIDE_EFFECTS, is_absent, regular_file_meta};
use crate::path::{Intent, RunPath};
use crate::stamp::{CurrentEntry, FileStamp};

impl Disk for Base {
    fn current(&self, path: &RunPath) -> io::Result<CurrentEntry> {
        let meta = match self.jail.meta(path) {
            Err(cause) if is_absent(&cause) => return Ok(CurrentEntry::Absent),
            meta => meta?,
        };
        Ok(match meta.kind {
            FileType::RegularFile => {
                CurrentEntry::File(FileStamp::of(&meta), meta.mode & INHERITED_MODE)
            }
            FileType::Directory => CurrentEntry::Folder,
            FileType::Symlink => match self.link_target(path).map(String::from_utf8)? {
                Ok(target) => CurrentEntry::Link(target),
                Err(_) => CurrentEntry::Other,
            },
            _ => CurrentEntry::Other,
        })
    }

    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>> {
        let file = self.jail.open_entry(path, OFlags::RDONLY | NO_SIDE_EFFECTS, Mode::empty())?;
        if regular_file_meta(&file)?.size > MAX_COMPARED {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let read = io::copy(&mut std::fs::File::from(file).take(MAX_COMPARED + 1), &mut hasher)?;
        Ok((read <= MAX_COMPARED).then(|| hasher.finalize()))
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
        const MAX_READ: u64 = 64 << 20;
        let file = self.jail.open_entry(path, OFlags::RDONLY | NO_SIDE_EFFECTS, Mode::empty())?;
        regular_file_meta(&file)?;
        let mut data = Vec::new();
        std::fs::File::from(file).take(MAX_READ).read_to_end(&mut data)?;
        Ok(data)
    }

    fn permits_runs(&self, path: &RunPath, staged: &RunPath) -> io::Result<bool> {
        if path_is_in_repository(path)
            || self.check_host_files(path, Intent::Write).is_err()
            || self.check_no_host_files(path).is_err()
            || (self.current(staged)? == CurrentEntry::Folder
                && self.holds_protected(staged).unwrap_or(true))
        {
            return Ok(false);
        }
        let has = |folder: &RunPath, part: &str| -> io::Result<bool> {
            let part = folder.join(part).map_err(|_| Errno::NAMETOOLONG)?;
            match self.jail.meta(&part) {
                Err(cause) if is_absent(&cause) => Ok(false),
                meta => meta.map(|_| true),
            }
        };
        Ok(!completes_layout(path, has)?)
    }

    fn check_writable(&self, path: &RunPath) -> io::Result<()> {
        self.open_to_write(path, OFlags::empty()).map(drop)
    }

    fn staging(&self, folder: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath> {
        staging_path(self, folder, number, path)
    }

    fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()> {
        // No other process reads a file with a staging name, so it need not appear atomically.
        if !self.host_files.hides_path(path) {
            return Base::create(self, path, data, mode);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NO_SIDE_EFFECTS;
        let mut file =
            std::fs::File::from(self.jail.open_entry(path, flags, Mode::from_raw_mode(0o666))?);
        file.write_all(data)?;
        mode.map_or(Ok(()), |mode| set_mode(&file, mode))?;
        Ok(rustix::fs::fsync(&file)?)
    }

    fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        Base::link(self, path, target)
    }

    fn create_folder(&self, path: &RunPath) -> io::Result<()> {
        Base::create_folder(self, path)
    }

    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        Base::rename_new(self, from, to)
    }

    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        Base::exchange(self, one, other)
    }

    fn unlink(&self, path: &RunPath) -> io::Result<()> {
        self.remove(path, &EntryInfo::Other("an entry"))
    }

    fn remove_folder(&self, path: &RunPath) -> io::Result<()> {
        self.remove(path, &EntryInfo::Folder { modified: None })
    }

    fn sync(&self, folder: &RunPath) -> io::Result<()> {
        self.sync_folder(folder)
    }
}
