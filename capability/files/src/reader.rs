//! A reader for an open file: a snapshot of a file in the overlay, or a handle to one in the base.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use crate::READ_LIMIT;
use crate::error::{AtPath as _, FilesError};
use crate::jail::regular_file_meta;
use crate::path::{Intent, RunPath};
use crate::stamp::FileStamp as Version;

/// An open file that can be read in parts at any offset.
#[derive(Debug)]
pub struct Reader {
    path: RunPath,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Memory(Bytes),
    Base { file: std::fs::File, size: u64, version: Version },
}

impl Reader {
    pub(crate) fn memory(path: RunPath, content: Bytes) -> Reader {
        Reader { path, source: Source::Memory(content) }
    }

    pub(crate) fn base(path: RunPath, file: std::fs::File, version: Version) -> Reader {
        let size = version.size();
        Reader { path, source: Source::Base { file, size, version } }
    }

    /// Returns the version of the base's file that was opened, or `None` for a file in the overlay.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        match &self.source {
            Source::Memory(_) => None,
            Source::Base { version, .. } => Some(version),
        }
    }

    /// Returns true if the file has not changed since it was opened. A snapshot of a file in the
    /// overlay never changes.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub fn is_unchanged(&self) -> Result<bool, FilesError> {
        match &self.source {
            Source::Memory(_) => Ok(true),
            Source::Base { file, version, .. } => match regular_file_meta(file) {
                Ok(meta) => Ok(Version::of(&meta) == *version),
                Err(cause) => Err(FilesError::io(Intent::Read, &self.path, cause)),
            },
        }
    }

    /// Returns the size that the file had when it was opened, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.source {
            Source::Memory(content) => content.len() as u64,
            Source::Base { size, .. } => *size,
        }
    }

    /// Reads `len` bytes from `offset`, but at most [`READ_LIMIT`]. Returns fewer bytes only at the
    /// end of the file, and none beyond it.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub fn read_at(&self, offset: u64, len: u64) -> Result<Bytes, FilesError> {
        let len = len.min(READ_LIMIT);
        match &self.source {
            Source::Memory(content) => {
                let all = content.len() as u64;
                let start = offset.min(all);
                let end = offset.saturating_add(len).min(all);
                // Both bounds are within the content, whose length is a `usize`.
                Ok(content.slice(start as usize..end as usize))
            }
            Source::Base { file, size, .. } => {
                read_range(file, offset, len, size.saturating_sub(offset))
                    .map(Bytes::from)
                    .at(Intent::Read, &self.path)
            }
        }
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// If the file is larger than [`READ_LIMIT`], or the base cannot be read.
    pub fn read_all(&self) -> Result<Bytes, FilesError> {
        self.read_bounded(READ_LIMIT).map_err(|error| match error {
            BoundedReadError::TooLarge(size) => FilesError::too_large(&self.path, size, READ_LIMIT),
            BoundedReadError::Failed(error) => error,
        })
    }

    /// Reads the whole file. Fails if the file has more than `max` bytes.
    pub(crate) fn read_bounded(&self, max: u64) -> Result<Bytes, BoundedReadError> {
        if self.size() > max {
            return Err(BoundedReadError::TooLarge(self.size()));
        }
        match &self.source {
            Source::Memory(content) => Ok(content.clone()),
            Source::Base { file, size, .. } => {
                // The file may have grown since it was opened, and kernel-generated files report no
                // size.
                let data = read_range(file, 0, max.saturating_add(1), *size).map_err(|cause| {
                    BoundedReadError::Failed(FilesError::io(Intent::Read, &self.path, cause))
                })?;
                if data.len() as u64 > max {
                    Err(BoundedReadError::TooLarge(data.len() as u64))
                } else {
                    Ok(data.into())
                }
            }
        }
    }
}

/// The error that [`Reader::read_bounded`] returns.
pub(crate) enum BoundedReadError {
    /// The file has at least this many bytes, which exceeds the limit.
    TooLarge(u64),
    Failed(FilesError),
}

/// Reads `len` bytes, or fewer at the end of the file. Allocates memory for `expected` bytes first
/// and then as needed, rather than for all `len` bytes up front.
fn read_range(file: &std::fs::File, offset: u64, len: u64, expected: u64) -> io::Result<Vec<u8>> {
    const STEP: usize = 64 << 10;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    let mut data = Vec::with_capacity(expected.min(len).min(READ_LIMIT as usize));
    while data.len() < len {
        let start = data.len();
        let room = (data.capacity() - start).max(STEP).min(len - start);
        data.resize(start + room, 0);
        let Some(free) = data.get_mut(start..) else { break };
        let Some(at) = offset.checked_add(start as u64).filter(|at| i64::try_from(*at).is_ok())
        else {
            data.truncate(start);
            break;
        };
        match file.read_at(free, at) {
            Ok(read) => {
                data.truncate(start + read);
                if read == 0 {
                    break;
                }
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => data.truncate(start),
            Err(cause) => return Err(cause),
        }
    }
    Ok(data)
}
