//! Host functions that read folders, or describe the preopened folder.

use std::sync::Arc;

use super::call::{CallError, CallResult};
use super::guest::Guest;
use super::memory::Memory;
use super::stat::{FOLDER_TYPE, file_type, inode_of};
use super::table::{Folder, ROOT};
use crate::errno::{Errno, Fault};

/// Size of the header of a folder entry, in bytes. The entry's name follows the header.
const HEADER: usize = 24;

/// Writes the type and the name length of the preopened folder to the guest's memory.
///
/// ```text
/// prestat    type u8 (0: folder), 3 unused, name length u32
/// ```
pub(super) fn prestat(guest: &mut Guest, memory: &mut Memory<'_>, fd: u32, out: u32) -> CallResult {
    check_preopened(guest, fd)?;
    memory.put_u64(out, 1 << 32)?;
    Ok(())
}

pub(super) fn prestat_name(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    at: u32,
    len: u32,
) -> CallResult {
    check_preopened(guest, fd)?;
    if len == 0 {
        return Err(Errno::NAMETOOLONG.into());
    }
    memory.put(at, b"/")?;
    Ok(())
}

/// Checks that a descriptor is the preopened folder: the root of the run's files.
fn check_preopened(guest: &Guest, fd: u32) -> Result<(), Errno> {
    match guest.table.folder(fd) {
        Ok(folder) if fd == ROOT && folder.path == "/" => Ok(()),
        _ => Err(Errno::BADF),
    }
}

/// Writes the entries of a folder to the guest's buffer, starting with entry number `cookie`, until
/// the buffer is full. The last entry may be truncated.
///
/// ```text
/// entry    next cookie u64, inode u64, name length u32, type u8, 3 unused, then the name
/// ```
pub(super) fn list(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    at: u32,
    len: u32,
    cookie: u64,
    out: u32,
) -> CallResult {
    memory.bytes(out, 4)?;
    let folder = entries(guest, fd, cookie == 0)?;
    let target = memory.bytes_mut(at, len)?;
    let listed = folder.entries.as_deref().unwrap_or_default();
    let own = [(".", FOLDER_TYPE), ("..", FOLDER_TYPE)];
    let entries = listed.iter().map(|entry| (entry.name.as_str(), file_type(entry.kind)));
    let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
    let mut used = 0;
    let mut next = cookie;
    for (name, kind) in own.into_iter().chain(entries).skip(skip) {
        next = next.saturating_add(1);
        let mut entry = Vec::with_capacity(HEADER + name.len());
        entry.extend_from_slice(&next.to_le_bytes());
        entry.extend_from_slice(
            &inode_of(&format!("{}/{name}", folder.path.trim_end_matches('/'))).to_le_bytes(),
        );
        // A name has at most 255 bytes, or a few more if it contains replacement characters.
        entry.extend_from_slice(&(name.len() as u32).to_le_bytes());
        entry.extend_from_slice(&[kind, 0, 0, 0]);
        entry.extend_from_slice(name.as_bytes());
        let Some(rest) = target.get_mut(used..) else { break };
        let fits = entry.len().min(rest.len());
        if let (Some(slot), Some(part)) = (rest.get_mut(..fits), entry.get(..fits)) {
            slot.copy_from_slice(part);
        }
        used += fits;
        if fits < entry.len() {
            break;
        }
    }
    // `used` is at most `len`, which is a `u32`.
    memory.put_u32(out, used as u32)?;
    Ok(())
}

/// Returns the folder that `fd` refers to, with its entries. Reads the entries if `reload` is true
/// or if they have not been read yet.
fn entries(guest: &mut Guest, fd: u32, reload: bool) -> Result<Folder, CallError> {
    let folder = guest.table.folder(fd)?.clone();
    if folder.entries.is_some() && !reload {
        return Ok(folder);
    }
    let listed = guest.files.list(&folder.path).map_err(|error| guest.fail(Fault::from(error)))?;
    let open = guest.table.folder_mut(fd)?;
    open.entries = Some(Arc::from(listed));
    Ok(open.clone())
}
