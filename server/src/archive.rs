//! The changed files of a session as a tar archive, which is created while it is sent.

use std::io;
use std::time::UNIX_EPOCH;
use std::vec;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use wattle_agent::host::capability::files::{
    Change, ChangeKind, EntryKind, Files, FilesError, Reader,
};

use crate::memory::{PART, RequestMemory};

/// Size of a block of an archive, in bytes. Each header and each file is padded to whole blocks.
const BLOCK: u64 = 512;

/// The zeros for the padding of files and for the end of an archive.
static ZEROS: [u8; 2 * BLOCK as usize] = [0; 2 * BLOCK as usize];

/// An archive that is created part by part. No part is larger than [`PART`], except the header of a
/// file with a long path.
pub(crate) struct Archive {
    files: Files,
    changes: vec::IntoIter<Change>,
    current: Option<Current>,
    is_over: bool,
    /// The memory that the request holds for the files.
    _memory: RequestMemory,
}

/// The file whose content is being added.
struct Current {
    reader: Reader,
    offset: u64,
}

impl Archive {
    /// Creates an archive of the files that a session changed. Omits removed files.
    pub(crate) fn new(files: Files, memory: RequestMemory) -> Result<Archive, FilesError> {
        let is_packed =
            |change: &Change| change.kind != ChangeKind::Deleted && change.entry == EntryKind::File;
        let changes: Vec<Change> = files.changes()?.into_iter().filter(is_packed).collect();
        let changes = changes.into_iter();
        Ok(Archive { files, changes, current: None, is_over: false, _memory: memory })
    }

    /// Returns the archive as the body of a response. If a file cannot be read, the connection ends
    /// before the archive is complete.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut archive| async {
            let part = archive.next().transpose()?;
            if let Err(cause) = &part {
                archive.is_over = true;
                tracing::error!(%cause, "failed to pack a file of a session");
            }
            Some((part, archive))
        }))
    }

    /// Returns the next part of the archive, or `None` after the last one.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        if let Some(Current { reader, offset }) = &mut self.current {
            let size = reader.size();
            if *offset < size {
                let wanted = (size - *offset).min(PART as u64);
                let part = reader.read_at(*offset, wanted).map_err(io::Error::other)?;
                if part.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *offset += part.len() as u64;
                return Ok(Some(part));
            }
            self.current = None;
            let padding = size.next_multiple_of(BLOCK) - size;
            if padding > 0 {
                return Ok(Some(zeros(padding)));
            }
        }
        if let Some(change) = self.changes.next() {
            let reader = self.files.open(&change.path).map_err(io::Error::other)?;
            let header = self.header(&change.path, reader.size())?;
            self.current = Some(Current { reader, offset: 0 });
            return Ok(Some(header));
        }
        self.is_over = true;
        Ok(Some(zeros(2 * BLOCK)))
    }

    /// Returns the header of a file.
    fn header(&self, path: &str, size: u64) -> io::Result<Bytes> {
        let modified = self.files.stat(path).ok().and_then(|stat| stat.modified);
        let seconds = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mut head = tar::Header::new_gnu();
        head.set_size(size);
        head.set_mode(0o644);
        head.set_mtime(seconds.map_or(0, |since| since.as_secs()));
        let mut archive = tar::Builder::new(Vec::new());
        // The content follows separately.
        archive.append_data(&mut head, path, io::empty())?;
        Ok(std::mem::take(archive.get_mut()).into())
    }
}

/// Returns `count` zeros, but at most two blocks.
fn zeros(count: u64) -> Bytes {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Bytes::from_static(ZEROS.get(..count).unwrap_or(&ZEROS))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http_body_util::BodyExt;
    use wattle_agent::Tenant;
    use wattle_agent::host::capability::files::OVERLAY_LIMIT;
    use wattle_agent::host::rt::OwnerAccounts;

    use super::*;
    use crate::memory::Accounts;

    #[tokio::test]
    async fn an_archive_contains_every_changed_file_and_arrives_in_small_parts() {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        let long = format!("{}long.txt", "folder/".repeat(40));
        let large: Vec<u8> = (0..3 * PART + 7).map(|at| (at % 251) as u8).collect();
        let contents: [(&str, &[u8]); 4] =
            [("a.txt", b"one"), ("block", &[1; 512]), ("empty", b""), (&long, b"deep")];
        for (path, content) in contents.into_iter().chain([("z.bin", &large[..])]) {
            files.write(path, content).unwrap();
        }
        files.write("removed", b"x").unwrap();
        files.remove("removed").unwrap();
        let accounts = Accounts::new(&OwnerAccounts::new(64 << 20));
        let memory = accounts.of_tenant(&Tenant::default());
        memory.hold(1 << 20).unwrap();
        let mut body = Archive::new(files, memory).unwrap().into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let part = frame.unwrap().into_data().unwrap();
            assert!(part.len() <= PART);
            bytes.extend_from_slice(&part);
        }
        let mut found = Vec::new();
        for entry in tar::Archive::new(&*bytes).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((path, content));
        }
        let mut expected: Vec<(String, Vec<u8>)> = contents
            .into_iter()
            .chain([("z.bin", &large[..])])
            .map(|(path, content)| (path.to_owned(), content.to_vec()))
            .collect();
        expected.sort();
        found.sort();
        assert!(found == expected, "{:?}", found.iter().map(|(path, _)| path).collect::<Vec<_>>());
    }
}
