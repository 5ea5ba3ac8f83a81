//! The one adapter between wire calls and typed Rust functions: no function body touches raw memory.

use wasmtime::{AsContext, AsContextMut, WasmBacktrace, WasmTy};

use crate::{Code, Failure, Run};

/// The engine's view of a call in progress.
pub type Caller<'a> = wasmtime::Caller<'a, Run>;

/// The size of a page of WebAssembly memory.
const PAGE: u64 = 65_536;

/// A value that a host function can give to a program.
pub trait Value {
    /// What stands on the stack for it: the value itself, or a pointer.
    type Wire: WasmTy + Default;

    /// Puts the value where the program can read it.
    ///
    /// # Errors
    /// `ENOMEM` where the program's memory is full.
    fn store(self, caller: &mut Caller<'_>) -> Result<Self::Wire, Failure>;
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            type Wire = $ty;
            fn store(self, _: &mut Caller<'_>) -> Result<$ty, Failure> { Ok(self) }
        }
    )*};
}
plain!(i32, i64, f64);

impl Value for bool {
    type Wire = i32;
    fn store(self, _: &mut Caller<'_>) -> Result<i32, Failure> {
        Ok(i32::from(self))
    }
}

/// Bytes go into the program's memory in wire format; the program gets the pointer.
macro_rules! in_memory {
    ($($ty:ty),*) => {$(
        impl Value for $ty {
            type Wire = i32;
            fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
                let bytes = AsRef::<[u8]>::as_ref(&*self);
                store_bytes(caller, bytes)
            }
        }
    )*};
}
in_memory!(String, &'static str, Vec<u8>, std::borrow::Cow<'static, str>, std::sync::Arc<str>, std::sync::Arc<[u8]>);

/// Room in the program's memory, uninitialised or zero; the program gets its address, aligned to 8.
#[derive(Clone, Copy, Debug)]
pub struct Room(pub u32);

impl Value for Room {
    type Wire = i32;
    fn store(self, caller: &mut Caller<'_>) -> Result<i32, Failure> {
        reserve(caller, self.0 as usize).map(u32::cast_signed)
    }
}

fn store_bytes(caller: &mut Caller<'_>, bytes: &[u8]) -> Result<i32, Failure> {
    let length = u32::try_from(bytes.len()).map_err(|_| full(bytes.len()))?;
    let pointer = reserve(caller, bytes.len().saturating_add(4))?;
    let memory = memory(caller)?.data_mut(&mut *caller);
    let at = pointer as usize;
    let (head, body) = (memory.get_mut(at..at + 4), at + 4);
    head.ok_or_else(|| full(bytes.len()))?.copy_from_slice(&length.to_le_bytes());
    memory.get_mut(body..body + bytes.len()).ok_or_else(|| full(bytes.len()))?.copy_from_slice(bytes);
    Ok(pointer.cast_signed())
}

fn full(bytes: usize) -> Failure {
    Failure::new(
        Code::ENOMEM,
        format!("the program's memory has no room for {bytes} more bytes; work on smaller pieces"),
    )
}

fn memory(caller: &Caller<'_>) -> Result<wasmtime::Memory, Failure> {
    caller.data().memory.ok_or_else(|| Failure::new(Code::EBOUND, "the program has no memory yet"))
}

/// Bumps the heap by `size` bytes, growing the memory where needed.
fn reserve(caller: &mut Caller<'_>, size: usize) -> Result<u32, Failure> {
    let memory = memory(caller)?;
    let start = u64::from(caller.data().heap).next_multiple_of(8);
    let end = start.checked_add(size as u64).filter(|end| *end <= u64::from(u32::MAX)).ok_or_else(|| full(size))?;
    let have = memory.data_size(&*caller) as u64;
    if end > have {
        // Doubling keeps the number of growths logarithmic; the exact need is the fallback near the limit.
        let need = (end - have).div_ceil(PAGE);
        let double = need.max(have / PAGE);
        if memory.grow(&mut *caller, double).is_err() {
            memory.grow(&mut *caller, need).map_err(|_| full(size))?;
        }
    }
    let (start, end) = (u32::try_from(start).map_err(|_| full(size))?, u32::try_from(end).map_err(|_| full(size))?);
    caller.data_mut().heap = end;
    Ok(start)
}

/// Performs a synchronous call with the program's memory borrowed for its arguments.
#[doc(hidden)]
pub fn call<R>(
    caller: &mut Caller<'_>,
    id: usize,
    f: impl FnOnce(&[u8], &mut Run) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let memory = memory(caller)?;
    let (bytes, run) = memory.data_and_store_mut(caller.as_context_mut());
    run.count(id);
    f(bytes, run)
}

/// Reads the arguments of an asynchronous call and marks it as under way.
#[doc(hidden)]
pub fn begin<R>(caller: &mut Caller<'_>, id: usize, f: impl FnOnce(&[u8]) -> Result<R, Failure>) -> Result<R, Failure> {
    let offset = place(caller);
    let run = caller.data_mut();
    run.count(id);
    run.waiting = Some((id, offset));
    f(memory(caller)?.data(caller.as_context()))
}

/// Marks the asynchronous call as done.
#[doc(hidden)]
pub fn end(caller: &mut Caller<'_>) {
    caller.data_mut().waiting = None;
}

#[doc(hidden)]
pub fn unit_or_trap(caller: &mut Caller<'_>, id: usize, outcome: Result<(), Failure>) -> wasmtime::Result<()> {
    outcome.map_err(|failure| trap(caller, id, failure))
}

#[doc(hidden)]
pub fn value_or_trap<V: Value>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<V::Wire> {
    outcome.and_then(|value| value.store(caller)).map_err(|failure| trap(caller, id, failure))
}

#[doc(hidden)]
pub fn unit_and_err(caller: &mut Caller<'_>, id: usize, outcome: Result<(), Failure>) -> wasmtime::Result<i32> {
    Ok(match outcome {
        Ok(()) => Code::SUCCESS.number(),
        Err(failure) => tell(caller, id, failure),
    })
}

#[doc(hidden)]
pub fn value_and_err<V: Value>(
    caller: &mut Caller<'_>,
    id: usize,
    outcome: Result<V, Failure>,
) -> wasmtime::Result<(V::Wire, i32)> {
    Ok(match outcome.and_then(|value| value.store(caller)) {
        Ok(value) => (value, Code::SUCCESS.number()),
        Err(failure) => (V::Wire::default(), tell(caller, id, failure)),
    })
}

/// Remembers why a call failed; the program gets the code.
fn tell(caller: &mut Caller<'_>, id: usize, failure: Failure) -> i32 {
    let (offset, code) = (place(caller), failure.code.number());
    caller.data_mut().fail(id, failure, offset);
    code
}

/// Ends the program: its function has no error result to tell the failure with.
fn trap(caller: &mut Caller<'_>, id: usize, failure: Failure) -> wasmtime::Error {
    let offset = place(caller);
    caller.data_mut().fail(id, failure.clone(), offset);
    wasmtime::Error::new(failure)
}

/// Where in the module the call was made, in bytes from its beginning.
fn place(caller: &Caller<'_>) -> Option<usize> {
    WasmBacktrace::capture(caller).frames().first().and_then(|frame| frame.module_offset())
}
