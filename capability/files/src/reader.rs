//! Reading a file that is open: a snapshot of the overlay's, or a handle of the base's.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use super::READ_LIMIT;
use super::error::{FilesError, Intent};
use super::jail::plain_meta;
use super::path::RunPath;
use super::stamp::FileStamp as Version;

/// An open file, read in parts at any offset.
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
    pub(super) fn memory(path: RunPath, content: Bytes) -> Reader {
        Reader { path, source: Source::Memory(content) }
    }

    pub(super) fn base(path: RunPath, file: std::fs::File, version: Version) -> Reader {
        let size = version.size();
        Reader { path, source: Source::Base { file, size, version } }
    }

    /// Returns which version of a file of the base was opened; `None` for a file of the overlay.
    #[must_use]
    pub fn version(&self) -> Option<&Version> {
        match &self.source {
            Source::Memory(_) => None,
            Source::Base { version, .. } => Some(version),
        }
    }

    /// Returns whether the file of the base is the same version as it was when it was opened. One of the overlay always is.
    ///
    /// # Errors
    /// Where the base cannot be read.
    pub fn is_unchanged(&self) -> Result<bool, FilesError> {
        match &self.source {
            Source::Memory(_) => Ok(true),
            Source::Base { file, version, .. } => match plain_meta(file) {
                Ok(meta) => Ok(Version::of(&meta) == *version),
                Err(cause) => Err(FilesError::io(Intent::Read, &self.path, cause)),
            },
        }
    }

    /// The size in bytes when the file was opened.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.source {
            Source::Memory(content) => content.len() as u64,
            Source::Base { size, .. } => *size,
        }
    }

    /// Reads at most `len` bytes, and no more than [`READ_LIMIT`], from `offset` on; fewer only at the end of the file,
    /// and none beyond it.
    ///
    /// # Errors
    /// Where the base cannot be read.
    pub fn read_at(&self, offset: u64, len: u64) -> Result<Bytes, FilesError> {
        let len = len.min(READ_LIMIT);
        match &self.source {
            Source::Memory(content) => {
                let all = content.len() as u64;
                let start = offset.min(all);
                let end = offset.saturating_add(len).min(all);
                // Both lie within the content, whose length is a `usize`.
                Ok(content.slice(start as usize..end as usize))
            }
            Source::Base { file, size, .. } => read_range(file, offset, len, size.saturating_sub(offset))
                .map(Bytes::from)
                .map_err(|cause| FilesError::io(Intent::Read, &self.path, cause)),
        }
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// Where it is larger than [`READ_LIMIT`], or the base cannot be read.
    pub fn read_all(&self) -> Result<Bytes, FilesError> {
        self.read_bounded(READ_LIMIT).map_err(|more| match more {
            Beyond::Limit(size) => FilesError::too_large(&self.path, size, READ_LIMIT),
            Beyond::Failed(error) => error,
        })
    }

    /// Reads the whole file, where it has at most `most` bytes.
    pub(super) fn read_bounded(&self, most: u64) -> Result<Bytes, Beyond> {
        if self.size() > most {
            return Err(Beyond::Limit(self.size()));
        }
        match &self.source {
            Source::Memory(content) => Ok(content.clone()),
            Source::Base { file, size, .. } => {
                // The file may have grown since, and some that the kernel makes up tell no size.
                let data = read_range(file, 0, most.saturating_add(1), *size)
                    .map_err(|cause| Beyond::Failed(FilesError::io(Intent::Read, &self.path, cause)))?;
                if data.len() as u64 > most { Err(Beyond::Limit(data.len() as u64)) } else { Ok(data.into()) }
            }
        }
    }
}

/// Why a bounded read gave nothing.
pub(super) enum Beyond {
    /// The file has at least this many bytes, which is more than was allowed.
    Limit(u64),
    Failed(FilesError),
}

/// Reads until `len` bytes or the end; memory is taken for what is there, `expected` first, never for `len` alone.
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
        let Some(at) = offset.checked_add(start as u64).filter(|at| i64::try_from(*at).is_ok()) else {
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
