//! The function that the host calls. The others are in `wattle-guest`.

#![expect(unsafe_code, reason = "the host calls this function by name")]

/// Carries out the request in the first `head` bytes of the input on the rest. The time is not
/// used.
#[unsafe(no_mangle)]
extern "C" fn answer(head: usize, _now: f64) -> i32 {
    wattle_guest::answer(head, crate::answer)
}
