//! `poll_oneoff`: sleeping, and waiting for streams.

use std::time::{Duration, Instant};

use futures_util::future::{FutureExt, pending, select_all};

use super::descriptors::Descriptor;
use super::guest::Guest;
use super::memory::Memory;
use super::{Call, CallResult, Exit, process};
use crate::errno::Errno;
use crate::stream::Stream;
use crate::toolbox::wait::WaitResult;

/// Maximum number of subscriptions in one call.
const MAX_SUBSCRIPTIONS: u32 = 1024;

/// Tag of a subscription to a clock.
const CLOCK: u8 = 0;
/// Tag of a subscription that waits until a descriptor is readable.
const READ: u8 = 1;
/// Tag of a subscription that waits until a descriptor is writable.
const WRITE: u8 = 2;

struct Subscription {
    userdata: u64,
    kind: u8,
    source: Source,
}

enum Source {
    Deadline(Instant),
    /// A deadline beyond the range of the clock.
    Never,
    Stream(Stream),
    Ready,
    Invalid(Errno),
}

struct Event {
    userdata: u64,
    kind: u8,
    error: u16,
    bytes: u64,
}

pub(super) fn poll(
    call: &mut Call<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    out: u32,
) -> CallResult {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::INVAL.into());
    }
    call.memory.bytes(subscriptions, count * 48)?;
    call.memory.bytes(events, count * 32)?;
    call.memory.bytes(out, 4)?;
    let parsed =
        (0..count).map(|index| subscription(call.guest, &call.memory, subscriptions + index * 48));
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let occurred = wait(call.guest, &parsed)?;
    for (event, at) in occurred.iter().zip((events..).step_by(32)) {
        put(&mut call.memory, at, event)?;
    }
    // There are at most as many events as subscriptions.
    call.memory.put_u32(out, occurred.len() as u32)
}

/// Reads a subscription from the guest's memory.
///
/// ```text
/// subscription    userdata u64, kind u8, 7 unused, then
///     clock       clock u32, 4 unused, time u64, precision u64, flags u16 (1: absolute)
///     read, write descriptor u32
/// ```
fn subscription(guest: &Guest, memory: &Memory<'_>, at: u32) -> Result<Subscription, Errno> {
    let kind = memory.u8(at + 8)?;
    let source = match kind {
        CLOCK => {
            let time = Duration::from_nanos(memory.u64(at + 24)?);
            let absolute = memory.u16(at + 40)? & 1 != 0;
            match process::now(guest, memory.u32(at + 16)?) {
                None => Source::Invalid(Errno::INVAL),
                Some(now) => {
                    let remaining = if absolute { time.saturating_sub(now) } else { time };
                    Instant::now().checked_add(remaining).map_or(Source::Never, Source::Deadline)
                }
            }
        }
        READ | WRITE => match guest.table.get(memory.u32(at + 16)?) {
            Ok(Descriptor::Stream(stream)) => Source::Stream(stream.clone()),
            Ok(Descriptor::Folder(_)) => Source::Ready,
            Err(errno) => Source::Invalid(errno),
        },
        _ => return Err(Errno::INVAL),
    };
    Ok(Subscription { userdata: memory.u64(at)?, kind, source })
}

/// Waits until at least one event occurs and returns all events that have occurred.
fn wait(guest: &Guest, subscriptions: &[Subscription]) -> Result<Vec<Event>, Exit> {
    let deadlines = subscriptions.iter().filter_map(|one| match one.source {
        Source::Deadline(time) => Some(time),
        _ => None,
    });
    let deadline = deadlines.min();
    let mut signalled = vec![false; subscriptions.len()];
    loop {
        let now = Instant::now();
        let occurred =
            subscriptions.iter().zip(&signalled).filter_map(|(one, ready)| event(one, *ready, now));
        let occurred: Vec<Event> = occurred.collect();
        if !occurred.is_empty() {
            return Ok(occurred);
        }
        let streams =
            subscriptions.iter().enumerate().filter_map(|(index, one)| match &one.source {
                Source::Stream(stream) => Some(async move {
                    stream.wait().await;
                    index
                }),
                _ => None,
            });
        let waits: Vec<_> = streams.map(FutureExt::boxed).collect();
        let result = if waits.is_empty() {
            guest.waiter.wait(pending::<usize>(), deadline)
        } else {
            guest.waiter.wait(select_all(waits).map(|(index, _, _)| index), deadline)
        };
        match result {
            WaitResult::Done(index) => {
                signalled.iter_mut().skip(index).take(1).for_each(|ready| *ready = true)
            }
            WaitResult::TimedOut => {}
            WaitResult::Cancelled => return Err(Exit::Cancelled),
        }
    }
}

/// Returns the event of a subscription, if it has occurred. `signalled` is true if the
/// subscription's stream has become ready since the call began.
fn event(one: &Subscription, signalled: bool, now: Instant) -> Option<Event> {
    let (error, bytes) = match &one.source {
        Source::Deadline(time) => (*time <= now).then_some((0, 0))?,
        Source::Never => return None,
        Source::Ready => (0, 0),
        Source::Invalid(errno) => (errno.number(), 0),
        Source::Stream(stream) => {
            let bytes = stream.ready().unwrap_or(0) as u64;
            (signalled || stream.is_ready(one.kind == WRITE)).then_some((0, bytes))?
        }
    };
    Some(Event { userdata: one.userdata, kind: one.kind, error, bytes })
}

/// Writes an event to the guest's memory.
///
/// ```text
/// event    userdata u64, error u16, kind u8, 5 unused, available bytes u64, flags u16, 6 unused
/// ```
fn put(memory: &mut Memory<'_>, at: u32, event: &Event) -> CallResult {
    let mut bytes = [0; 32];
    let parts: [(usize, &[u8]); 4] = [
        (0, &event.userdata.to_le_bytes()),
        (8, &event.error.to_le_bytes()),
        (10, &[event.kind]),
        (16, &event.bytes.to_le_bytes()),
    ];
    for (start, part) in parts {
        if let Some(slot) = bytes.get_mut(start..start + part.len()) {
            slot.copy_from_slice(part);
        }
    }
    memory.put(at, &bytes)
}
