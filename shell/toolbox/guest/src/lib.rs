//! The WebAssembly interface of a guest of the sandbox: its buffers, and the functions that the
//! host calls by name.
//!
//! The host calls `reserve(n)`, writes `n` bytes to the returned address (a head, then a body),
//! calls the guest's `answer` with the head's length, and reads `output_len` bytes at `output`. A
//! guest has no imports: no clock, no environment, no files.

#![expect(unsafe_code, reason = "the host calls these functions by name")]

use std::cell::RefCell;

#[derive(Default)]
struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Allocates the input buffer and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *const u8 {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.input = vec![0; length];
        buffers.input.as_ptr()
    })
}

/// Returns the address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    BUFFERS.with_borrow(|buffers| buffers.output.as_ptr())
}

/// Returns the length of the output, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_len() -> usize {
    BUFFERS.with_borrow(|buffers| buffers.output.len())
}

/// Splits the input into its head, of `head` bytes, and its body. Calls `work` with both, stores
/// the output that `work` returns, and returns the status.
pub fn answer(head: usize, work: impl FnOnce(&[u8], &[u8]) -> (i32, Vec<u8>)) -> i32 {
    let input = BUFFERS.with_borrow_mut(|buffers| std::mem::take(&mut buffers.input));
    let (head, body) = input.split_at_checked(head).unwrap_or_default();
    let (status, output) = work(head, body);
    BUFFERS.with_borrow_mut(|buffers| buffers.output = output);
    status
}
