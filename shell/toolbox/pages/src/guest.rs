//! The `answer` function, which the host calls. The other functions are in `wattle-guest`.

#![expect(unsafe_code, reason = "the host calls this function by name")]

/// Executes the request in the first `head` bytes of the input on the remaining bytes. The time
/// `_now` is not used.
#[unsafe(no_mangle)]
extern "C" fn answer(head: usize, _now: f64) -> i32 {
    wattle_guest::answer(head, crate::answer)
}
