//! Strings that grow in place.
//!
//! Normally, a string in a program's memory is immutable. A program that holds the only reference
//! to a string may extend the string in place: the memory block of the string has free space at its
//! end, so an append copies only the added part.

use std::collections::BTreeMap;

use crate::host::{Caller, memory, out_of_memory, reserve, wrong_recorded_type};
use crate::tape::RecordedValue;
use crate::{Failure, Record, Run, Value, abi};

/// Maximum number of a program's strings that can grow in place. If another string is added, all
/// earlier ones lose this ability and are copied when they next grow.
const MAX_GROWING: usize = 4_096;

/// Minimum space for the string in a block, in bytes.
const MIN_ROOM: usize = 64;

/// Size of the length field that precedes a string, in bytes.
const LENGTH: usize = 4;

/// The blocks in a program's memory in which a string can grow: a map from a block's address to the
/// maximum length of its string, in bytes. The host allocates all blocks above the program's static
/// data.
#[derive(Debug, Default)]
pub(crate) struct GrowingStrings(BTreeMap<u32, usize>);

/// A string in the program's memory, and the text to append to it. The program gets the address of
/// the result. The address does not change if `in_place` is true and the block has room.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The address of the string to append to.
    pub address: i32,
    /// The text to append.
    pub text: String,
    /// If true, nothing else in the program refers to the string. Even then, only a string that an
    /// earlier append returned can grow in place.
    pub in_place: bool,
}

impl Record for Appended {
    /// Records only the appended text, because the string itself is part of the program's state.
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

/// Copies a string to a new block with space for twice `total` bytes. Returns the address of the
/// block.
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
