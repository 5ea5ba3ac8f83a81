//! Calls host functions in any order with any operands, including results of earlier calls. Checks
//! that nothing panics, that no function accesses data outside the program's memory, and that the
//! host's memory for a program is limited.
#![no_main]

#[path = "../../../capability/tests/capability/calls.rs"]
mod calls;
#[path = "../../../capability/tests/capability/world.rs"]
mod world;

use std::sync::LazyLock;

use calls::Calls;
use tokio::runtime::{Builder, Runtime};

/// A runtime with a paused clock, which advances only while all tasks wait, so that waiting takes
/// no real time.
static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
});
static CALLS: LazyLock<Calls> = LazyLock::new(|| TOKIO.block_on(Calls::new(&[])));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let calls = &*CALLS;
    TOKIO.block_on(calls.perform(bytes));
});
