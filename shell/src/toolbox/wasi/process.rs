//! What a guest is started with and ends with, its clocks, and the commands that it starts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wasmtime::Caller;

use super::memory::Memory;
use super::stage::{Exit, Stage};
use super::{Done, Fail};
use crate::command::{Command, Status};
use crate::errno::Errno;
use crate::stream::Stream;

pub(super) fn args_sizes(stage: &mut Stage, memory: &mut Memory<'_>, count: u32, size: u32) -> Done {
    sizes(memory, stage.command.argv.iter().map(String::len), count, size)
}

pub(super) fn args_get(stage: &mut Stage, memory: &mut Memory<'_>, argv: u32, buffer: u32) -> Done {
    Ok(memory.put_texts(argv, buffer, stage.command.argv.iter().map(String::as_bytes))?)
}

pub(super) fn environ_sizes(stage: &mut Stage, memory: &mut Memory<'_>, count: u32, size: u32) -> Done {
    let lengths = stage.command.env.iter().map(|(name, value)| name.len() + 1 + value.len());
    sizes(memory, lengths, count, size)
}

pub(super) fn environ_get(stage: &mut Stage, memory: &mut Memory<'_>, environ: u32, buffer: u32) -> Done {
    let texts: Vec<String> = stage.command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(memory.put_texts(environ, buffer, texts.iter().map(String::as_bytes))?)
}

fn sizes(memory: &mut Memory<'_>, lengths: impl Iterator<Item = usize>, count: u32, size: u32) -> Done {
    let (mut number, mut bytes) = (0u32, 0u32);
    for length in lengths {
        let whole = u32::try_from(length).ok().and_then(|length| length.checked_add(1)).ok_or(Errno::TOO_BIG)?;
        number += 1;
        bytes = bytes.checked_add(whole).ok_or(Errno::TOO_BIG)?;
    }
    memory.put_u32(count, number)?;
    memory.put_u32(size, bytes)?;
    Ok(())
}

/// The clocks of preview 1, by number.
const REAL: u32 = 0;
const MONOTONIC: u32 = 1;
const PROCESS: u32 = 2;
const THREAD: u32 = 3;

pub(super) fn clock_resolution(_: &mut Stage, memory: &mut Memory<'_>, clock: u32, out: u32) -> Done {
    if clock > THREAD {
        return Err(Errno::INVAL.into());
    }
    memory.put_u64(out, 1)?;
    Ok(())
}

pub(super) fn clock_time(stage: &mut Stage, memory: &mut Memory<'_>, clock: u32, _: u64, out: u32) -> Done {
    let time = now(stage, clock).ok_or(Errno::INVAL)?;
    memory.put_u64(out, u64::try_from(time.as_nanos()).map_err(|_| Errno::OVERFLOW)?)?;
    Ok(())
}

/// What a clock shows; `None` where there is no such clock.
pub(super) fn now(stage: &Stage, clock: u32) -> Option<Duration> {
    match clock {
        REAL => Some(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        MONOTONIC => Some(stage.started.elapsed()),
        PROCESS | THREAD => Some(stage.busy()),
        _ => None,
    }
}

pub(super) fn random(_: &mut Stage, memory: &mut Memory<'_>, at: u32, len: u32) -> Done {
    fastrand::fill(memory.bytes_mut(at, len)?);
    Ok(())
}

pub(super) fn make_way(_: &mut Stage, _: &mut Memory<'_>) -> Done {
    std::thread::yield_now();
    Ok(())
}

/// There are no signals.
pub(super) fn raise(_: &mut Stage, _: &mut Memory<'_>, _: u32) -> Done {
    Err(Errno::NOSYS.into())
}

/// The status of a process is the lowest byte of what it ends with.
pub(super) fn exit(_: Caller<'_, Stage>, code: u32) -> wasmtime::Result<()> {
    Err(Exit::Status(Status(code.to_le_bytes()[0])).into())
}

/// Flags of `wattle.spawn`: the environment is the one that was given; the standard input is empty.
const OWN_ENVIRONMENT: u32 = 1;
const NO_INPUT: u32 = 2;
/// The most bytes of words and of variables that a command is started with.
const WORDS_MOST: u32 = 2 << 20;

/// Runs a command to its end and gives its status: 0 to 255. Its directory and its descriptors are the caller's.
///
/// ```text
/// argv, env    texts, each ended by NUL
/// ```
pub(super) fn spawn(
    mut caller: Caller<'_, Stage>,
    argv: u32,
    argv_len: u32,
    env: u32,
    env_len: u32,
    flags: u32,
    timeout_ms: i64,
) -> wasmtime::Result<u32> {
    if caller.data().is_truncated() {
        return Err(Exit::Cut.into());
    }
    let Some(memory) = caller.data().memory else { return Ok(Status::CANNOT_RUN.0.into()) };
    let (bytes, stage) = memory.data_and_store_mut(&mut caller);
    let memory = Memory(bytes);
    let read = words(&memory, argv, argv_len).and_then(|argv| Ok((argv, words(&memory, env, env_len)?)));
    let timeout = u64::try_from(timeout_ms).ok().filter(|time| *time > 0).map(Duration::from_millis);
    let status = match read {
        Ok((argv, env)) if !argv.is_empty() => start(stage, argv, env, flags, timeout),
        _ => Ok(Status::CANNOT_RUN),
    };
    match status {
        Ok(status) => Ok(status.0.into()),
        Err(Fail::Ends(exit)) => Err(exit.into()),
        Err(Fail::Told(_)) => Ok(Status::CANNOT_RUN.0.into()),
    }
}

fn words(memory: &Memory<'_>, at: u32, len: u32) -> Result<Vec<String>, Errno> {
    if len > WORDS_MOST {
        return Err(Errno::TOO_BIG);
    }
    let text = memory.text(at, len)?;
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}

fn start(
    stage: &mut Stage,
    argv: Vec<String>,
    env: Vec<String>,
    flags: u32,
    timeout: Option<Duration>,
) -> Result<Status, Fail> {
    let own = env.into_iter().filter_map(|pair| pair.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())));
    let env = if flags & OWN_ENVIRONMENT != 0 { own.collect() } else { stage.command.env.clone() };
    let mut fds = stage.command.fds.clone();
    if flags & NO_INPUT != 0 {
        fds.retain(|(number, _)| *number != 0);
        fds.push((0, Stream::null()));
    }
    let command = Command { argv, env, cwd: stage.command.cwd.clone(), fds };
    let spawn = std::sync::Arc::clone(&stage.spawn);
    // On the runtime's own threads: this one waits, and may be cut off.
    let task = Task(tokio::spawn(async move { spawn.spawn(command, timeout).await }));
    let mut task = task;
    Ok(stage.wait(&mut task.0)?.unwrap_or(Status::CANNOT_RUN))
}

/// A command that ends with who waits for it.
struct Task(tokio::task::JoinHandle<Status>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
