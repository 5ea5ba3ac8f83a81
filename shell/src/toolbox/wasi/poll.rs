//! `poll_oneoff`: sleeping, and waiting for streams.

use std::time::{Duration, Instant};

use futures_util::future::{FutureExt, pending, select_all};

use super::Done;
use super::memory::Memory;
use super::process;
use super::stage::{Exit, Stage};
use super::table::Descriptor;
use crate::errno::Errno;
use crate::stream::Stream;
use crate::toolbox::Waited;

/// The most subscriptions of one call.
const MOST: u32 = 1024;
const CLOCK: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;

struct Subscription {
    userdata: u64,
    kind: u8,
    what: What,
}

enum What {
    At(Instant),
    /// A time so far off that it never comes.
    Never,
    Stream(Stream),
    Ready,
    Wrong(Errno),
}

struct Event {
    userdata: u64,
    kind: u8,
    error: u16,
    bytes: u64,
}

pub(super) fn poll(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    out: u32,
) -> Done {
    if count == 0 || count > MOST {
        return Err(Errno::INVAL.into());
    }
    memory.bytes(subscriptions, count * 48)?;
    memory.bytes(events, count * 32)?;
    memory.bytes(out, 4)?;
    let asked = (0..count).map(|index| subscription(stage, memory, subscriptions + index * 48));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let happened = wait(stage, &asked)?;
    for (event, at) in happened.iter().zip((events..).step_by(32)) {
        put(memory, at, event)?;
    }
    // No more than there are subscriptions.
    memory.put_u32(out, happened.len() as u32)?;
    Ok(())
}

/// ```text
/// subscription    userdata u64, kind u8, 7 unused, then
///     clock       clock u32, 4 unused, time u64, precision u64, flags u16 (1: absolute)
///     read, write descriptor u32
/// ```
fn subscription(stage: &Stage, memory: &Memory<'_>, at: u32) -> Result<Subscription, Errno> {
    let kind = memory.u8(at + 8)?;
    let what = match kind {
        CLOCK => {
            let time = Duration::from_nanos(memory.u64(at + 24)?);
            let absolute = memory.u16(at + 40)? & 1 != 0;
            match process::now(stage, memory.u32(at + 16)?) {
                None => What::Wrong(Errno::INVAL),
                Some(now) => {
                    let left = if absolute { time.saturating_sub(now) } else { time };
                    Instant::now().checked_add(left).map_or(What::Never, What::At)
                }
            }
        }
        READ | WRITE => match stage.table.get(memory.u32(at + 16)?) {
            Ok(Descriptor::Stream(stream)) => What::Stream(stream.clone()),
            Ok(Descriptor::Folder(_)) => What::Ready,
            Err(errno) => What::Wrong(errno),
        },
        _ => return Err(Errno::INVAL),
    };
    Ok(Subscription { userdata: memory.u64(at)?, kind, what })
}

/// Waits until something has happened, and gives all that has.
fn wait(stage: &Stage, asked: &[Subscription]) -> Result<Vec<Event>, Exit> {
    let until = asked.iter().filter_map(|one| if let What::At(time) = &one.what { Some(*time) } else { None }).min();
    let mut told = vec![false; asked.len()];
    loop {
        let now = Instant::now();
        let happened = asked.iter().zip(&told).filter_map(|(one, told)| event(one, *told, now));
        let happened: Vec<Event> = happened.collect();
        if !happened.is_empty() {
            return Ok(happened);
        }
        let streams = asked.iter().enumerate().filter_map(|(index, one)| match &one.what {
            What::Stream(stream) => Some(async move {
                stream.wait().await;
                index
            }),
            _ => None,
        });
        let waits: Vec<_> = streams.map(FutureExt::boxed).collect();
        let waited = if waits.is_empty() {
            stage.waiter.wait(pending::<usize>(), until)
        } else {
            stage.waiter.wait(select_all(waits).map(|(index, _, _)| index), until)
        };
        match waited {
            Waited::Done(index) => told.iter_mut().skip(index).take(1).for_each(|told| *told = true),
            Waited::Late => {}
            Waited::Cut => return Err(Exit::Cut),
        }
    }
}

/// What has happened to a subscription; `told` where its stream said so.
fn event(one: &Subscription, told: bool, now: Instant) -> Option<Event> {
    let (error, bytes) = match &one.what {
        What::At(time) => (*time <= now).then_some((0, 0))?,
        What::Never => return None,
        What::Ready => (0, 0),
        What::Wrong(errno) => (errno.number(), 0),
        What::Stream(stream) => {
            let bytes = stream.ready().unwrap_or(0) as u64;
            (told || stream.is_ready(one.kind == WRITE)).then_some((0, bytes))?
        }
    };
    Some(Event { userdata: one.userdata, kind: one.kind, error, bytes })
}

/// ```text
/// event    userdata u64, error u16, kind u8, 5 unused, bytes that are ready u64, flags u16, 6 unused
/// ```
fn put(memory: &mut Memory<'_>, at: u32, event: &Event) -> Result<(), Errno> {
    let mut bytes = [0; 32];
    let parts: [(usize, &[u8]); 4] = [
        (0, &event.userdata.to_le_bytes()),
        (8, &event.error.to_le_bytes()),
        (10, &[event.kind]),
        (16, &event.bytes.to_le_bytes()),
    ];
    for (start, part) in parts {
        if let Some(place) = bytes.get_mut(start..start + part.len()) {
            place.copy_from_slice(part);
        }
    }
    memory.put(at, &bytes)
}
