//! The host of the commands: WASI preview 1 over the run's files and the shell's streams, and the
//! shell's own function `wattle.spawn`.
//!
//! A guest sees one folder as descriptor 3: the root of the run's files. No function accesses the
//! host's file system. The clock is the only part of the host that a guest sees. No function panics
//! on any operand: `memory.rs` checks addresses, `descriptors.rs` checks descriptors, and the run's
//! files check paths.

mod descriptors;
mod guest;
mod memory;
mod paths;
mod poll;
mod process;
mod stat;

use std::fmt;

use wasmtime::{Caller, Linker, WasmTy};

pub(crate) use guest::Guest;

use crate::command::Status;
use crate::errno::Errno;
use memory::Memory;

/// Adds the functions of WASI preview 1, and `wattle.spawn`, to a linker.
///
/// # Errors
/// If the engine rejects a signature.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasi(linker, "args_get", process::args_get)?;
    wasi(linker, "args_sizes_get", process::args_sizes)?;
    wasi(linker, "environ_get", process::environ_get)?;
    wasi(linker, "environ_sizes_get", process::environ_sizes)?;
    wasi(linker, "clock_res_get", process::clock_resolution)?;
    wasi(linker, "clock_time_get", process::clock_time)?;
    wasi(linker, "random_get", process::random)?;
    wasi(linker, "sched_yield", process::yield_now)?;
    wasi(linker, "proc_raise", process::raise)?;
    wasi(linker, "poll_oneoff", poll::poll)?;

    wasi(linker, "fd_advise", descriptors::advise)?;
    wasi(linker, "fd_allocate", descriptors::allocate)?;
    wasi(linker, "fd_close", descriptors::close)?;
    wasi(linker, "fd_datasync", descriptors::sync)?;
    wasi(linker, "fd_fdstat_get", stat::fdstat)?;
    wasi(linker, "fd_fdstat_set_flags", descriptors::set_flags)?;
    wasi(linker, "fd_fdstat_set_rights", descriptors::set_rights)?;
    wasi(linker, "fd_filestat_get", stat::filestat)?;
    wasi(linker, "fd_filestat_set_size", descriptors::resize)?;
    wasi(linker, "fd_filestat_set_times", stat::set_times)?;
    wasi(linker, "fd_pread", descriptors::read_at)?;
    wasi(linker, "fd_prestat_get", descriptors::prestat)?;
    wasi(linker, "fd_prestat_dir_name", descriptors::prestat_name)?;
    wasi(linker, "fd_pwrite", descriptors::write_at)?;
    wasi(linker, "fd_read", descriptors::read)?;
    wasi(linker, "fd_readdir", descriptors::list)?;
    wasi(linker, "fd_renumber", descriptors::renumber)?;
    wasi(linker, "fd_seek", descriptors::seek)?;
    wasi(linker, "fd_sync", descriptors::sync)?;
    wasi(linker, "fd_tell", descriptors::tell)?;
    wasi(linker, "fd_write", descriptors::write)?;

    wasi(linker, "path_create_directory", paths::create_folder)?;
    wasi(linker, "path_filestat_get", stat::path_filestat)?;
    wasi(linker, "path_filestat_set_times", stat::path_set_times)?;
    wasi(linker, "path_link", paths::hard_link)?;
    wasi(linker, "path_open", paths::open)?;
    wasi(linker, "path_readlink", paths::read_link)?;
    wasi(linker, "path_remove_directory", paths::remove_folder)?;
    wasi(linker, "path_rename", paths::rename)?;
    wasi(linker, "path_symlink", paths::symlink)?;
    wasi(linker, "path_unlink_file", paths::unlink)?;

    wasi(linker, "sock_accept", |call: &mut Call<'_>, fd: u32, _: u32, _: u32| {
        no_socket(call, fd)
    })?;
    wasi(
        linker,
        "sock_recv",
        |call: &mut Call<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32, _: u32| no_socket(call, fd),
    )?;
    wasi(linker, "sock_send", |call: &mut Call<'_>, fd: u32, _: u32, _: u32, _: u32, _: u32| {
        no_socket(call, fd)
    })?;
    wasi(linker, "sock_shutdown", |call: &mut Call<'_>, fd: u32, _: u32| no_socket(call, fd))?;

    linker.func_wrap(WASI, "proc_exit", process::exit)?;
    linker.func_wrap("wattle", "spawn", process::spawn)?;
    Ok(())
}

/// The module name of WASI preview 1.
const WASI: &str = "wasi_snapshot_preview1";

/// Adds a function of WASI preview 1 to a linker.
fn wasi<Operands>(
    linker: &mut Linker<Guest>,
    name: &str,
    function: impl HostFunction<Operands>,
) -> wasmtime::Result<()> {
    function.link(linker, name)
}

/// A host function. It takes the call, and the operands of its signature in preview 1.
trait HostFunction<Operands> {
    fn link(self, linker: &mut Linker<Guest>, name: &str) -> wasmtime::Result<()>;
}

macro_rules! host_function {
    ($($operand:ident: $type:ident),*) => {
        impl<F, $($type: WasmTy),*> HostFunction<($($type,)*)> for F
        where
            F: Fn(&mut Call<'_>, $($type),*) -> CallResult + Send + Sync + 'static,
        {
            fn link(self, linker: &mut Linker<Guest>, name: &str) -> wasmtime::Result<()> {
                let enter = move |mut caller: Caller<'_, Guest>, $($operand: $type),*| {
                    enter(&mut caller, |call| self(call, $($operand),*))
                };
                linker.func_wrap(WASI, name, enter).map(drop)
            }
        }
    };
}

host_function!();
host_function!(a: A);
host_function!(a: A, b: B);
host_function!(a: A, b: B, c: C);
host_function!(a: A, b: B, c: C, d: D);
host_function!(a: A, b: B, c: C, d: D, e: E);
host_function!(a: A, b: B, c: C, d: D, e: E, f: G);
host_function!(a: A, b: B, c: C, d: D, e: E, f: G, g: H);
host_function!(a: A, b: B, c: C, d: D, e: E, f: G, g: H, h: I, i: J);

/// Runs a host function. Returns 0 or an error number to the guest, or ends the guest.
fn enter(
    caller: &mut Caller<'_, Guest>,
    work: impl FnOnce(&mut Call<'_>) -> CallResult,
) -> wasmtime::Result<i32> {
    if caller.data().is_cancelled() {
        return Err(Exit::Cancelled.into());
    }
    let Some(memory) = caller.data().memory else { return Ok(i32::from(Errno::FAULT.number())) };
    let (bytes, guest) = memory.data_and_store_mut(&mut *caller);
    match work(&mut Call { guest, memory: Memory(bytes) }) {
        Ok(()) => Ok(0),
        Err(CallError::Errno(errno)) => Ok(i32::from(errno.number())),
        Err(CallError::Exit(exit)) => Err(exit.into()),
    }
}

/// A call of a host function: the guest that calls it, and the guest's memory.
struct Call<'a> {
    guest: &'a mut Guest,
    memory: Memory<'a>,
}

/// Result of a host function that returns no value.
type CallResult = Result<(), CallError>;

/// The error of a host function call: an error number for the guest, or a reason to end the guest.
enum CallError {
    /// The error number that the function returns to the guest.
    Errno(Errno),
    /// The reason why the guest must end.
    Exit(Exit),
}

impl From<Errno> for CallError {
    fn from(errno: Errno) -> CallError {
        CallError::Errno(errno)
    }
}

impl From<Exit> for CallError {
    fn from(exit: Exit) -> CallError {
        CallError::Exit(exit)
    }
}

/// Reason to end a guest, either from within a host function or at a tick of the engine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The guest called `proc_exit` with a status.
    Status(Status),
    /// The guest wrote to a pipe without a reader.
    Pipe,
    /// The guest exceeded its processor time.
    Time,
    /// The account of the guest's run has no processor time left.
    Account,
    /// The guest's caller cancelled it.
    Cancelled,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guest ended: {self:?}")
    }
}

impl std::error::Error for Exit {}

/// Fails, because no descriptor is a socket.
fn no_socket(call: &Call<'_>, fd: u32) -> CallResult {
    call.guest.table.get(fd)?;
    Err(Errno::NOTSOCK.into())
}
