//! Reading folders, and the one that is open from the start.

use std::sync::Arc;

use super::memory::Memory;
use super::stage::Stage;
use super::stat::{FOLDER_TYPE, file_type, number_of};
use super::table::{Folder, TOP};
use super::{Done, Fail};
use crate::errno::{Errno, Fault};

/// The bytes of an entry before its name.
const HEAD: usize = 24;

/// ```text
/// prestat    kind u8 (0, a folder), 3 unused, length of the name u32
/// ```
pub(super) fn prestat(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, out: u32) -> Done {
    top(stage, fd)?;
    memory.put_u64(out, 1 << 32)?;
    Ok(())
}

pub(super) fn prestat_name(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, at: u32, len: u32) -> Done {
    top(stage, fd)?;
    if len == 0 {
        return Err(Errno::NAMETOOLONG.into());
    }
    memory.put(at, b"/")?;
    Ok(())
}

/// Only the top, as long as it is open, was so before the guest began.
fn top(stage: &Stage, fd: u32) -> Result<(), Errno> {
    match stage.table.folder(fd) {
        Ok(folder) if fd == TOP && folder.path == "/" => Ok(()),
        _ => Err(Errno::BADF),
    }
}

/// Writes the entries behind the first `cookie` of them, as far as they fit; the last one may be cut off.
///
/// ```text
/// entry    cookie of the next u64, inode u64, length of the name u32, type u8, 3 unused; the name
/// ```
pub(super) fn list(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    at: u32,
    len: u32,
    cookie: u64,
    out: u32,
) -> Done {
    memory.bytes(out, 4)?;
    let folder = entries(stage, fd, cookie == 0)?;
    let target = memory.bytes_mut(at, len)?;
    let listed = folder.listed.as_deref().unwrap_or_default();
    let own = [(".", FOLDER_TYPE), ("..", FOLDER_TYPE)];
    let entries = listed.iter().map(|entry| (entry.name.as_str(), file_type(entry.kind)));
    let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
    let mut used = 0;
    let mut next = cookie;
    for (name, kind) in own.into_iter().chain(entries).skip(skip) {
        next = next.saturating_add(1);
        let mut entry = Vec::with_capacity(HEAD + name.len());
        entry.extend_from_slice(&next.to_le_bytes());
        entry.extend_from_slice(&number_of(&format!("{}/{name}", folder.path.trim_end_matches('/'))).to_le_bytes());
        // A name has at most 255 bytes, or a few more where it is shown with replacement characters.
        entry.extend_from_slice(&(name.len() as u32).to_le_bytes());
        entry.extend_from_slice(&[kind, 0, 0, 0]);
        entry.extend_from_slice(name.as_bytes());
        let Some(rest) = target.get_mut(used..) else { break };
        let fits = entry.len().min(rest.len());
        if let (Some(place), Some(part)) = (rest.get_mut(..fits), entry.get(..fits)) {
            place.copy_from_slice(part);
        }
        used += fits;
        if fits < entry.len() {
            break;
        }
    }
    // No more than `len`, which is a `u32`.
    memory.put_u32(out, used as u32)?;
    Ok(())
}

/// The folder with its entries, read anew where a guest begins.
fn entries(stage: &mut Stage, fd: u32, anew: bool) -> Result<Folder, Fail> {
    let folder = stage.table.folder(fd)?.clone();
    if folder.listed.is_some() && !anew {
        return Ok(folder);
    }
    let listed = stage.files.list(&folder.path).map_err(|error| stage.fail(Fault::from(error)))?;
    let held = stage.table.folder_mut(fd)?;
    held.listed = Some(Arc::from(listed));
    Ok(held.clone())
}
