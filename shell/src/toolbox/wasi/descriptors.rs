//! The functions on open descriptors: reading, writing, the place in a file.

use std::io::SeekFrom;

use super::memory::Memory;
use super::paths::APPEND;
use super::stage::{Exit, Stage};
use super::table::Descriptor;
use super::{Done, Fail};
use crate::errno::{Errno, Fault};
use crate::stream::Stream;

pub(super) fn read(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, parts: u32, count: u32, out: u32) -> Done {
    let stream = stage.table.stream(fd)?;
    let parts = memory.parts(parts, count)?;
    memory.bytes(out, 4)?;
    let room = parts.iter().map(|(_, len)| *len as usize).sum();
    let data = match stream.read_here(room) {
        Some(data) => data?,
        None => stage.wait(stream.read(room))??,
    };
    memory.scatter(&parts, &data)?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn write(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, parts: u32, count: u32, out: u32) -> Done {
    let stream = stage.table.stream(fd)?.clone();
    let parts = memory.parts(parts, count)?;
    memory.bytes(out, 4)?;
    let gathered;
    let data = match parts.as_slice() {
        [(at, len)] => memory.bytes(*at, *len)?,
        parts => {
            gathered = memory.gather(parts)?;
            &gathered
        }
    };
    let written = data.len();
    write_all(stage, &stream, data)?;
    memory.put_u32(out, written as u32)?;
    Ok(())
}

fn write_all(stage: &mut Stage, stream: &Stream, data: &[u8]) -> Done {
    let written = match stream.write_here(data) {
        Some(written) => written,
        None => stage.wait(stream.write(data))?.map_err(Fault::from),
    };
    match written {
        Ok(()) => Ok(()),
        // As the signal that it would be: what nobody reads need not be written.
        Err(fault) if fault.errno == Errno::PIPE => Err(Exit::Pipe.into()),
        Err(fault) => Err(stage.fail(fault)),
    }
}

pub(super) fn read_at(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    parts: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> Done {
    let file = stage.table.stream(fd)?.file().ok_or(Errno::SPIPE)?;
    let parts = memory.parts(parts, count)?;
    let room = parts.iter().map(|(_, len)| *len as usize).sum();
    let data = file.read_at(offset, room)?;
    memory.scatter(&parts, &data)?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn write_at(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    parts: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> Done {
    let stream = stage.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let data = memory.gather(&memory.parts(parts, count)?)?;
    memory.bytes(out, 4)?;
    file.write_at(offset, &data).map_err(|fault| stage.fail(fault))?;
    memory.put_u32(out, data.len() as u32)?;
    Ok(())
}

pub(super) fn seek(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, by: i64, whence: u32, out: u32) -> Done {
    let stream = stage.table.stream(fd)?;
    let to = match whence {
        0 => SeekFrom::Start(u64::try_from(by).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(by),
        2 => SeekFrom::End(by),
        _ => return Err(Errno::INVAL.into()),
    };
    memory.bytes(out, 8)?;
    let place = stream.seek(to)?;
    memory.put_u64(out, place)?;
    Ok(())
}

pub(super) fn tell(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, out: u32) -> Done {
    seek(stage, memory, fd, 0, 1, out)
}

pub(super) fn close(stage: &mut Stage, _: &mut Memory<'_>, fd: u32) -> Done {
    Ok(stage.table.close(fd)?)
}

pub(super) fn renumber(stage: &mut Stage, _: &mut Memory<'_>, from: u32, to: u32) -> Done {
    Ok(stage.table.renumber(from, to)?)
}

/// What is written is there for everybody at once; there is nothing to wait for.
pub(super) fn sync(stage: &mut Stage, _: &mut Memory<'_>, fd: u32) -> Done {
    stage.table.get(fd)?;
    Ok(())
}

pub(super) fn advise(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u64, _: u64, advice: u32) -> Done {
    let stream = stage.table.stream(fd)?;
    match (stream.file(), advice) {
        (None, _) => Err(Errno::SPIPE.into()),
        (Some(_), 0..=5) => Ok(()),
        (Some(_), _) => Err(Errno::INVAL.into()),
    }
}

pub(super) fn allocate(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, offset: u64, len: u64) -> Done {
    let stream = stage.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let size = offset.checked_add(len).ok_or(Errno::FBIG)?;
    if len == 0 {
        return Err(Errno::INVAL.into());
    }
    if !file.can_write() {
        return Err(Errno::BADF.into());
    }
    if size > file.stat().size { file.resize(size).map_err(|fault| stage.fail(fault)) } else { Ok(()) }
}

pub(super) fn resize(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, size: u64) -> Done {
    let stream = stage.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::INVAL)?;
    if i64::try_from(size).is_err() {
        return Err(Errno::INVAL.into());
    }
    file.resize(size).map_err(|fault| stage.fail(fault))
}

/// Only where a file is written can be set; the other flags change nothing here.
pub(super) fn set_flags(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, flags: u32) -> Done {
    if let Descriptor::Stream(stream) = stage.table.get(fd)?
        && let Some(file) = stream.file()
    {
        file.set_append(flags & APPEND != 0);
    }
    Ok(())
}

/// Rights are what a descriptor was opened for; giving some of them up changes nothing here.
pub(super) fn set_rights(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u64, _: u64) -> Done {
    stage.table.get(fd)?;
    Ok(())
}

fn no_socket(stage: &Stage, fd: u32) -> Done {
    stage.table.get(fd)?;
    Err(Fail::Told(Errno::NOTSOCK))
}

pub(super) fn accept(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u32, _: u32) -> Done {
    no_socket(stage, fd)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn receive(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32, _: u32) -> Done {
    no_socket(stage, fd)
}

pub(super) fn send(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32) -> Done {
    no_socket(stage, fd)
}

pub(super) fn shutdown(stage: &mut Stage, _: &mut Memory<'_>, fd: u32, _: u32) -> Done {
    no_socket(stage, fd)
}
