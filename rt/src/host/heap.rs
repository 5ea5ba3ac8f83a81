//! Allocations in a program's memory.

use super::Caller;
use crate::{Code, Failure};

/// Size of a page of WebAssembly memory, in bytes.
pub(crate) const PAGE: u64 = 65_536;

pub(super) fn store_bytes(caller: &mut Caller<'_>, bytes: &[u8]) -> Result<i32, Failure> {
    let length = u32::try_from(bytes.len()).map_err(|_| out_of_memory(bytes.len()))?;
    let pointer = reserve(caller, bytes.len().saturating_add(4))?;
    let memory = memory(caller)?.data_mut(&mut *caller);
    let at = pointer as usize;
    let (head, body) = (memory.get_mut(at..at + 4), at + 4);
    head.ok_or_else(|| out_of_memory(bytes.len()))?.copy_from_slice(&length.to_le_bytes());
    memory
        .get_mut(body..body + bytes.len())
        .ok_or_else(|| out_of_memory(bytes.len()))?
        .copy_from_slice(bytes);
    Ok(pointer.cast_signed())
}

pub(crate) fn out_of_memory(bytes: usize) -> Failure {
    Failure::new(
        Code::ENOMEM,
        format!("the program's memory has no room for {bytes} more bytes; work on smaller pieces"),
    )
}

pub(crate) fn memory(caller: &Caller<'_>) -> Result<wasmtime::Memory, Failure> {
    caller.data().memory.ok_or_else(|| Failure::new(Code::EBOUND, "the program has no memory yet"))
}

/// Allocates `size` bytes at the end of the heap and grows the memory if needed. Returns the
/// address of the allocation.
pub(crate) fn reserve(caller: &mut Caller<'_>, size: usize) -> Result<u32, Failure> {
    let memory = memory(caller)?;
    let start = u64::from(caller.data().heap).next_multiple_of(8);
    let end = start
        .checked_add(size as u64)
        .filter(|end| *end <= u64::from(u32::MAX))
        .ok_or_else(|| out_of_memory(size))?;
    let current = memory.data_size(&*caller) as u64;
    if end > current {
        // Doubling keeps the number of growths logarithmic. Near the limit, only the required pages
        // are added.
        let need = (end - current).div_ceil(PAGE);
        let double = need.max(current / PAGE);
        if memory.grow(&mut *caller, double).is_err() {
            let grown = memory.grow(&mut *caller, need);
            grown.map_err(|_| {
                caller.data().memory_limit.refused.clone().unwrap_or_else(|| out_of_memory(size))
            })?;
        }
    }
    let (start, end) = (
        u32::try_from(start).map_err(|_| out_of_memory(size))?,
        u32::try_from(end).map_err(|_| out_of_memory(size))?,
    );
    caller.data_mut().heap = end;
    Ok(start)
}
