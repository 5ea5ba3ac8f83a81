//! The host of the commands: WASI preview 1 over the run's files and the shell's streams, and the
//! shell's own function `wattle.spawn`.
//!
//! A guest sees one folder as descriptor 3: the root of the run's files. No function accesses the
//! host's file system. The clock is the only part of the host that a guest sees. No function panics
//! on any operand: `memory.rs` checks addresses, `table.rs` checks descriptors, and the run's files
//! check paths.

mod call;
mod descriptors;
mod folders;
mod guest;
mod memory;
mod paths;
mod poll;
mod process;
mod resolve;
mod stat;
mod table;

use wasmtime::{Caller, Linker};

pub(crate) use call::Exit;
pub(crate) use guest::Guest;

use crate::errno::Errno;
use call::{CallError, CallResult};
use memory::Memory;

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) = $function:path;)*) => {
        /// Adds the functions of WASI preview 1, and `wattle.spawn`, to a linker.
        ///
        /// # Errors
        /// If the engine rejects a signature.
        pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
            $(linker.func_wrap(
                "wasi_snapshot_preview1",
                stringify!($name),
                |mut caller: Caller<'_, Guest>, $($arg: $type),*| -> wasmtime::Result<i32> {
                    enter(&mut caller, |guest, memory| $function(guest, memory, $($arg),*))
                },
            )?;)*
            linker.func_wrap("wasi_snapshot_preview1", "proc_exit", process::exit)?;
            linker.func_wrap("wattle", "spawn", process::spawn)?;
            Ok(())
        }
    };
}

functions! {
    args_get(argv: u32, buffer: u32) = process::args_get;
    args_sizes_get(count: u32, size: u32) = process::args_sizes;
    environ_get(environ: u32, buffer: u32) = process::environ_get;
    environ_sizes_get(count: u32, size: u32) = process::environ_sizes;
    clock_res_get(clock: u32, out: u32) = process::clock_resolution;
    clock_time_get(clock: u32, precision: u64, out: u32) = process::clock_time;
    random_get(at: u32, len: u32) = process::random;
    sched_yield() = process::yield_now;
    proc_raise(signal: u32) = process::raise;
    poll_oneoff(subscriptions: u32, events: u32, count: u32, out: u32) = poll::poll;

    fd_advise(fd: u32, offset: u64, len: u64, advice: u32) = descriptors::advise;
    fd_allocate(fd: u32, offset: u64, len: u64) = descriptors::allocate;
    fd_close(fd: u32) = descriptors::close;
    fd_datasync(fd: u32) = descriptors::sync;
    fd_fdstat_get(fd: u32, out: u32) = stat::fdstat;
    fd_fdstat_set_flags(fd: u32, flags: u32) = descriptors::set_flags;
    fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) = descriptors::set_rights;
    fd_filestat_get(fd: u32, out: u32) = stat::filestat;
    fd_filestat_set_size(fd: u32, size: u64) = descriptors::resize;
    fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32) = stat::set_times;
    fd_pread(fd: u32, parts: u32, count: u32, offset: u64, out: u32) = descriptors::read_at;
    fd_prestat_get(fd: u32, out: u32) = folders::prestat;
    fd_prestat_dir_name(fd: u32, at: u32, len: u32) = folders::prestat_name;
    fd_pwrite(fd: u32, parts: u32, count: u32, offset: u64, out: u32) = descriptors::write_at;
    fd_read(fd: u32, parts: u32, count: u32, out: u32) = descriptors::read;
    fd_readdir(fd: u32, at: u32, len: u32, cookie: u64, out: u32) = folders::list;
    fd_renumber(from: u32, to: u32) = descriptors::renumber;
    fd_seek(fd: u32, by: i64, whence: u32, out: u32) = descriptors::seek;
    fd_sync(fd: u32) = descriptors::sync;
    fd_tell(fd: u32, out: u32) = descriptors::tell;
    fd_write(fd: u32, parts: u32, count: u32, out: u32) = descriptors::write;

    path_create_directory(fd: u32, path: u32, len: u32) = paths::create_folder;
    path_filestat_get(fd: u32, flags: u32, path: u32, len: u32, out: u32) = stat::path_filestat;
    path_filestat_set_times(
        fd: u32, flags: u32, path: u32, len: u32, accessed: u64, modified: u64, which: u32
    ) = stat::path_set_times;
    path_link(
        fd: u32, flags: u32, old: u32, old_len: u32, to: u32, new: u32, new_len: u32
    ) = paths::hard_link;
    path_open(
        fd: u32, lookup: u32, path: u32, len: u32, how: u32, rights: u64, inheriting: u64,
        flags: u32, out: u32
    ) = paths::open;
    path_readlink(fd: u32, path: u32, len: u32, at: u32, room: u32, out: u32) = paths::read_link;
    path_remove_directory(fd: u32, path: u32, len: u32) = paths::remove_folder;
    path_rename(fd: u32, old: u32, old_len: u32, to: u32, new: u32, new_len: u32) = paths::rename;
    path_symlink(target: u32, target_len: u32, fd: u32, path: u32, len: u32) = paths::symlink;
    path_unlink_file(fd: u32, path: u32, len: u32) = paths::unlink;

    sock_accept(fd: u32, flags: u32, out: u32) = descriptors::accept;
    sock_recv(
        fd: u32, parts: u32, count: u32, flags: u32, size: u32, out_flags: u32
    ) = descriptors::receive;
    sock_send(fd: u32, parts: u32, count: u32, flags: u32, out: u32) = descriptors::send;
    sock_shutdown(fd: u32, how: u32) = descriptors::shutdown;
}

/// Runs a host function. Returns 0 or an error number to the guest, or ends the guest.
fn enter(
    caller: &mut Caller<'_, Guest>,
    work: impl FnOnce(&mut Guest, &mut Memory<'_>) -> CallResult,
) -> wasmtime::Result<i32> {
    if caller.data().is_cancelled() {
        return Err(Exit::Cancelled.into());
    }
    let Some(memory) = caller.data().memory else { return Ok(i32::from(Errno::FAULT.number())) };
    let (bytes, guest) = memory.data_and_store_mut(&mut *caller);
    match work(guest, &mut Memory(bytes)) {
        Ok(()) => Ok(0),
        Err(CallError::Errno(errno)) => Ok(i32::from(errno.number())),
        Err(CallError::Exit(exit)) => Err(exit.into()),
    }
}
