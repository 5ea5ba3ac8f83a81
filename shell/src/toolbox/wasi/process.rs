//! Host functions for the process: arguments, environment, exit, clocks, and starting commands.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wasmtime::Caller;

use super::guest::Guest;
use super::memory::Memory;
use super::{Call, CallError, CallResult, Exit};
use crate::command::{Command, Status};
use crate::errno::Errno;
use crate::stream::Stream;

pub(super) fn args_sizes(call: &mut Call<'_>, count: u32, size: u32) -> CallResult {
    sizes(&mut call.memory, call.guest.command.argv.iter().map(String::len), count, size)
}

pub(super) fn args_get(call: &mut Call<'_>, argv: u32, buffer: u32) -> CallResult {
    call.memory.put_texts(argv, buffer, call.guest.command.argv.iter().map(String::as_bytes))
}

pub(super) fn environ_sizes(call: &mut Call<'_>, count: u32, size: u32) -> CallResult {
    let lengths = call.guest.command.env.iter().map(|(name, value)| name.len() + 1 + value.len());
    sizes(&mut call.memory, lengths, count, size)
}

pub(super) fn environ_get(call: &mut Call<'_>, environ: u32, buffer: u32) -> CallResult {
    let texts: Vec<String> =
        call.guest.command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    call.memory.put_texts(environ, buffer, texts.iter().map(String::as_bytes))
}

fn sizes(
    memory: &mut Memory<'_>,
    lengths: impl Iterator<Item = usize>,
    count: u32,
    size: u32,
) -> CallResult {
    let mut number = 0u32;
    let mut bytes = 0u32;
    for length in lengths {
        let whole = u32::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(1))
            .ok_or(Errno::TOO_BIG)?;
        number += 1;
        bytes = bytes.checked_add(whole).ok_or(Errno::TOO_BIG)?;
    }
    memory.put_u32(count, number)?;
    memory.put_u32(size, bytes)
}

/// The preview 1 id of the wall clock.
const REAL: u32 = 0;
/// The preview 1 id of the monotonic clock.
const MONOTONIC: u32 = 1;
/// The preview 1 id of the clock that measures the process's processor time.
const PROCESS: u32 = 2;
/// The preview 1 id of the clock that measures the thread's processor time.
const THREAD: u32 = 3;

pub(super) fn clock_resolution(call: &mut Call<'_>, clock: u32, out: u32) -> CallResult {
    if clock > THREAD {
        return Err(Errno::INVAL.into());
    }
    call.memory.put_u64(out, 1)
}

pub(super) fn clock_time(call: &mut Call<'_>, clock: u32, _: u64, out: u32) -> CallResult {
    let time = now(call.guest, clock).ok_or(Errno::INVAL)?;
    call.memory.put_u64(out, u64::try_from(time.as_nanos()).map_err(|_| Errno::OVERFLOW)?)
}

/// Returns the time of a clock, or `None` if there is no such clock.
pub(super) fn now(guest: &Guest, clock: u32) -> Option<Duration> {
    match clock {
        REAL => Some(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        MONOTONIC => Some(guest.started.elapsed()),
        PROCESS | THREAD => Some(guest.busy()),
        _ => None,
    }
}

pub(super) fn random(call: &mut Call<'_>, at: u32, len: u32) -> CallResult {
    getrandom::fill(call.memory.bytes_mut(at, len)?).map_err(|_| Errno::IO)?;
    Ok(())
}

pub(super) fn yield_now(_: &mut Call<'_>) -> CallResult {
    std::thread::yield_now();
    Ok(())
}

/// Always fails, because there are no signals.
pub(super) fn raise(_: &mut Call<'_>, _: u32) -> CallResult {
    Err(Errno::NOSYS.into())
}

/// Ends the guest. Its status is the lowest byte of `code`.
pub(super) fn exit(_: Caller<'_, Guest>, code: u32) -> wasmtime::Result<()> {
    Err(Exit::Status(Status(code.to_le_bytes()[0])).into())
}

/// Flag of `wattle.spawn`: use the passed environment.
const OWN_ENVIRONMENT: u32 = 1;
/// Flag of `wattle.spawn`: start with an empty standard input.
const NO_INPUT: u32 = 2;
/// Maximum size of a command's arguments, and of its environment, in bytes.
const MAX_ARGUMENTS: u32 = 2 << 20;

/// Runs a command to completion and returns its status, from 0 to 255. The command inherits the
/// caller's working directory and descriptors.
///
/// ```text
/// argv, env    NUL-terminated strings
/// ```
pub(super) fn spawn(
    mut caller: Caller<'_, Guest>,
    argv: u32,
    argv_len: u32,
    env: u32,
    env_len: u32,
    flags: u32,
    timeout_ms: i64,
) -> wasmtime::Result<u32> {
    if caller.data().is_cancelled() {
        return Err(Exit::Cancelled.into());
    }
    let Some(memory) = caller.data().memory else { return Ok(Status::CANNOT_RUN.0.into()) };
    let (bytes, guest) = memory.data_and_store_mut(&mut caller);
    let memory = Memory(bytes);
    let read = strings(&memory, argv, argv_len)
        .and_then(|argv| Ok((argv, strings(&memory, env, env_len)?)));
    let timeout =
        u64::try_from(timeout_ms).ok().filter(|time| *time > 0).map(Duration::from_millis);
    let status = match read {
        Ok((argv, env)) if !argv.is_empty() => start(guest, argv, env, flags, timeout),
        _ => Ok(Status::CANNOT_RUN),
    };
    match status {
        Ok(status) => Ok(status.0.into()),
        Err(CallError::Exit(exit)) => Err(exit.into()),
        Err(CallError::Errno(_)) => Ok(Status::CANNOT_RUN.0.into()),
    }
}

fn strings(memory: &Memory<'_>, at: u32, len: u32) -> Result<Vec<String>, Errno> {
    if len > MAX_ARGUMENTS {
        return Err(Errno::TOO_BIG);
    }
    let text = memory.text(at, len)?;
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}

fn start(
    guest: &mut Guest,
    argv: Vec<String>,
    env: Vec<String>,
    flags: u32,
    timeout: Option<Duration>,
) -> Result<Status, CallError> {
    let passed = env
        .into_iter()
        .filter_map(|pair| pair.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())));
    let env =
        if flags & OWN_ENVIRONMENT != 0 { passed.collect() } else { guest.command.env.clone() };
    let mut fds = guest.command.fds.clone();
    if flags & NO_INPUT != 0 {
        fds.retain(|(number, _)| *number != 0);
        fds.push((0, Stream::null()));
    }
    let command = Command { argv, env, cwd: guest.command.cwd.clone(), fds };
    let spawn = std::sync::Arc::clone(&guest.spawn);
    // The command runs on other threads. This thread only waits, so that the stage can be
    // cancelled in the meantime.
    let mut task = AbortOnDrop(tokio::spawn(async move { spawn.spawn(command, timeout).await }));
    Ok(guest.wait(&mut task.0)?.unwrap_or(Status::CANNOT_RUN))
}

/// A guard for a command's task. Dropping the guard aborts the task.
struct AbortOnDrop(tokio::task::JoinHandle<Status>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
