//! Calls every host function in any order with any operands, what earlier calls gave among them:
//! nothing panics, nothing is read outside of the program's memory, and what the host holds for a
//! program is bounded.
#![no_main]

#[path = "../../../capability/tests/calls/mod.rs"]
mod calls;
#[path = "../../../capability/tests/world/mod.rs"]
mod world;

use std::sync::LazyLock;

use calls::Calls;
use tokio::runtime::{Builder, Runtime};

/// Its clock stands still while something is done and jumps while nothing is: waiting takes no
/// time.
static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
});
static CALLS: LazyLock<Calls> = LazyLock::new(|| TOKIO.block_on(Calls::new(&[])));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let calls = &*CALLS;
    TOKIO.block_on(calls.perform(bytes));
});
