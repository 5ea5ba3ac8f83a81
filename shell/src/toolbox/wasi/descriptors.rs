//! Host functions that read, write, seek and close open descriptors.

use std::io::SeekFrom;

use super::call::{CallError, CallResult, Exit};
use super::guest::Guest;
use super::memory::Memory;
use super::paths::APPEND;
use super::table::Descriptor;
use crate::errno::{Errno, Fault};
use crate::stream::Stream;

pub(super) fn read(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    out: u32,
) -> CallResult {
    let stream = guest.table.stream(fd)?;
    let buffers = memory.buffers(buffers, count)?;
    memory.bytes(out, 4)?;
    let room = buffers.iter().map(|(_, len)| *len as usize).sum();
    let data = match stream.try_read(room) {
        Some(data) => data?,
        None => guest.wait(stream.read(room))??,
    };
    memory.scatter(&buffers, &data)?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn write(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    out: u32,
) -> CallResult {
    let stream = guest.table.stream(fd)?.clone();
    let buffers = memory.buffers(buffers, count)?;
    memory.bytes(out, 4)?;
    let gathered;
    let data = match buffers.as_slice() {
        [(at, len)] => memory.bytes(*at, *len)?,
        buffers => {
            gathered = memory.gather(buffers)?;
            &gathered
        }
    };
    let written = data.len();
    write_all(guest, &stream, data)?;
    memory.put_u32(out, written as u32)?;
    Ok(())
}

fn write_all(guest: &mut Guest, stream: &Stream, data: &[u8]) -> CallResult {
    let written = match stream.try_write(data) {
        Some(written) => written,
        None => guest.wait(stream.write(data))?.map_err(Fault::from),
    };
    match written {
        Ok(()) => Ok(()),
        // Like SIGPIPE: a write to a pipe without a reader ends the guest.
        Err(fault) if fault.errno == Errno::PIPE => Err(Exit::Pipe.into()),
        Err(fault) => Err(guest.fail(fault)),
    }
}

pub(super) fn read_at(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> CallResult {
    let file = guest.table.stream(fd)?.file().ok_or(Errno::SPIPE)?;
    let buffers = memory.buffers(buffers, count)?;
    let room = buffers.iter().map(|(_, len)| *len as usize).sum();
    let data = file.read_at(offset, room)?;
    memory.scatter(&buffers, &data)?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn write_at(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> CallResult {
    let stream = guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let data = memory.gather(&memory.buffers(buffers, count)?)?;
    memory.bytes(out, 4)?;
    file.write_at(offset, &data).map_err(|fault| guest.fail(fault))?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn seek(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    by: i64,
    whence: u32,
    out: u32,
) -> CallResult {
    let stream = guest.table.stream(fd)?;
    let to = match whence {
        0 => SeekFrom::Start(u64::try_from(by).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(by),
        2 => SeekFrom::End(by),
        _ => return Err(Errno::INVAL.into()),
    };
    memory.bytes(out, 8)?;
    let position = stream.seek(to)?;
    memory.put_u64(out, position)?;
    Ok(())
}

pub(super) fn tell(guest: &mut Guest, memory: &mut Memory<'_>, fd: u32, out: u32) -> CallResult {
    seek(guest, memory, fd, 0, 1, out)
}

pub(super) fn close(guest: &mut Guest, _: &mut Memory<'_>, fd: u32) -> CallResult {
    Ok(guest.table.close(fd)?)
}

pub(super) fn renumber(guest: &mut Guest, _: &mut Memory<'_>, from: u32, to: u32) -> CallResult {
    Ok(guest.table.renumber(from, to)?)
}

/// Only checks that the descriptor is open, because every write is immediately visible to all
/// readers.
pub(super) fn sync(guest: &mut Guest, _: &mut Memory<'_>, fd: u32) -> CallResult {
    guest.table.get(fd)?;
    Ok(())
}

pub(super) fn advise(
    guest: &mut Guest,
    _: &mut Memory<'_>,
    fd: u32,
    _: u64,
    _: u64,
    advice: u32,
) -> CallResult {
    let stream = guest.table.stream(fd)?;
    match (stream.file(), advice) {
        (None, _) => Err(Errno::SPIPE.into()),
        (Some(_), 0..=5) => Ok(()),
        (Some(_), _) => Err(Errno::INVAL.into()),
    }
}

pub(super) fn allocate(
    guest: &mut Guest,
    _: &mut Memory<'_>,
    fd: u32,
    offset: u64,
    len: u64,
) -> CallResult {
    let stream = guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let size = offset.checked_add(len).ok_or(Errno::FBIG)?;
    if len == 0 {
        return Err(Errno::INVAL.into());
    }
    if !file.can_write() {
        return Err(Errno::BADF.into());
    }
    if size > file.stat().size {
        file.resize(size).map_err(|fault| guest.fail(fault))
    } else {
        Ok(())
    }
}

pub(super) fn resize(guest: &mut Guest, _: &mut Memory<'_>, fd: u32, size: u64) -> CallResult {
    let stream = guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::INVAL)?;
    if i64::try_from(size).is_err() {
        return Err(Errno::INVAL.into());
    }
    file.resize(size).map_err(|fault| guest.fail(fault))
}

/// Sets or clears the append flag. The other flags have no effect.
pub(super) fn set_flags(guest: &mut Guest, _: &mut Memory<'_>, fd: u32, flags: u32) -> CallResult {
    if let Descriptor::Stream(stream) = guest.table.get(fd)?
        && let Some(file) = stream.file()
    {
        file.set_append(flags & APPEND != 0);
    }
    Ok(())
}

/// Only checks that the descriptor is open, because a descriptor keeps the rights that it was
/// opened with.
pub(super) fn set_rights(
    guest: &mut Guest,
    _: &mut Memory<'_>,
    fd: u32,
    _: u64,
    _: u64,
) -> CallResult {
    guest.table.get(fd)?;
    Ok(())
}

fn no_socket(guest: &Guest, fd: u32) -> CallResult {
    guest.table.get(fd)?;
    Err(CallError::Errno(Errno::NOTSOCK))
}

pub(super) fn accept(guest: &mut Guest, _: &mut Memory<'_>, fd: u32, _: u32, _: u32) -> CallResult {
    no_socket(guest, fd)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn receive(
    guest: &mut Guest,
    _: &mut Memory<'_>,
    fd: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> CallResult {
    no_socket(guest, fd)
}

pub(super) fn send(
    guest: &mut Guest,
    _: &mut Memory<'_>,
    fd: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> CallResult {
    no_socket(guest, fd)
}

pub(super) fn shutdown(guest: &mut Guest, _: &mut Memory<'_>, fd: u32, _: u32) -> CallResult {
    no_socket(guest, fd)
}
