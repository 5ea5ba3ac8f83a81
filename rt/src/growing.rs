//! Strings that grow in place.
//!
//! A string in a program's memory is immutable for everyone who has its address. A program that owns
//! the only address may let the string grow: the block has room after the string, so that adding to
//! it copies only what is added.

use std::collections::HashMap;

use crate::host::{Caller, memory, out_of_memory, reserve, wrong_recorded_type};
use crate::tape::RecordedValue;
use crate::{Failure, Record, Run, Value, abi};

/// Maximum number of strings of a run that can grow in place. If there are more, they are copied
/// once.
const MAX_GROWING: usize = 4_096;

/// Minimum room of a block for a string, in bytes.
const MIN_ROOM: usize = 64;

/// Number of bytes of a string's length, which precedes the string.
const LENGTH: usize = 4;

/// The blocks in a program's memory in which a string can grow: the maximum length of the string by
/// the address of the block. The host allocates them all above the program's static data.
#[derive(Debug, Default)]
pub(crate) struct GrowingStrings(HashMap<u32, usize>);

/// A string of the program with text added at its end. The program gets the address of the result,
/// which is that of the string itself if `in_place` is true and its block has room.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The address of the string.
    pub address: i32,
    /// The text to add.
    pub text: String,
    /// If true, nothing else in the program refers to the string. Only a string that an earlier
    /// append returned can grow in place, whatever this says.
    pub in_place: bool,
}

impl Record for Appended {
    /// Records what is added, since the string itself is part of the program's state.
    fn record(&self, _: &mut Run) -> RecordedValue {
        RecordedValue::Bytes(self.text.as_bytes().to_vec())
    }
}

impl Value for Appended {
    type Raw = i32;

    fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        let Appended { address, text, in_place } = self;
        let start = address.cast_unsigned();
        let length = abi::bytes(memory(caller)?.data(&*caller), address)?.len();
        let total = length + text.len();
        let growing = &caller.data().growing.0;
        let has_room = in_place && growing.get(&start).is_some_and(|room| total <= *room);
        let block = if has_room { start } else { moved(caller, start, length, total)? };
        let at = block as usize;
        let memory = memory(caller)?.data_mut(&mut *caller);
        let end = at + LENGTH + length;
        write(memory, at, &u32::try_from(total).map_err(|_| out_of_memory(total))?.to_le_bytes())?;
        write(memory, end, text.as_bytes())?;
        Ok(block.cast_signed())
    }

    fn restore(_: RecordedValue, _: &mut Caller<'_>) -> Result<i32, Failure> {
        Err(wrong_recorded_type())
    }
}

/// Copies a string to a new block with room for `total` bytes and as many more. Returns its address.
fn moved(caller: &mut Caller<'_>, from: u32, length: usize, total: usize) -> Result<u32, Failure> {
    let room = total.saturating_mul(2).max(MIN_ROOM);
    let block = reserve(caller, room.saturating_add(LENGTH))?;
    let from = from as usize + LENGTH;
    let memory = memory(caller)?.data_mut(&mut *caller);
    let to = block as usize + LENGTH;
    if from.max(to).saturating_add(length) > memory.len() {
        return Err(out_of_memory(total));
    }
    memory.copy_within(from..from + length, to);
    let growing = &mut caller.data_mut().growing.0;
    if growing.len() >= MAX_GROWING {
        growing.clear();
    }
    growing.insert(block, room);
    Ok(block)
}

fn write(memory: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), Failure> {
    let to = memory.get_mut(at..at.saturating_add(bytes.len()));
    to.ok_or_else(|| out_of_memory(bytes.len()))?.copy_from_slice(bytes);
    Ok(())
}
