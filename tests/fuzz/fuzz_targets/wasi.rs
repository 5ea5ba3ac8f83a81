//! Calls arbitrary WASI functions with arbitrary operands, as a shell command could. Checks that
//! each script ends in time, that nothing panics, and that no call triggers an internal error of
//! the host.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use wattle_capability::files::Files;
use wattle_shell::{CommandOutcome, KillReason, Stream};

/// The guest that the shell's tests use. It performs the calls in a script.
#[allow(dead_code, unreachable_pub, reason = "the shell's tests use all of it")]
#[path = "../../../shell/tests/shell/stages/guest.rs"]
mod guest;

/// Paths at known addresses in the guest's memory, 32 bytes apart.
const PATHS: [&str; 8] =
    ["a", "a/b", "../outside", "/dev/stdin", "dev/null", "//a//", "_steps.jsonl", "\u{e9}\u{fffd}"];

/// Operands near the limits of their types.
const EDGES: [u64; 8] = [
    u32::MAX as u64,
    i32::MAX as u64,
    u64::MAX,
    i64::MAX as u64,
    0xfff0,
    0x10_0000,
    1 << 31,
    1 << 63,
];

/// Maximum number of operands in a call.
const OPERANDS: usize = 9;

/// Maximum number of calls in a script.
const CALLS: usize = 64;

/// The function that the scripts never call, because it may block indefinitely.
const WAITS: &str = "poll_oneoff";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().unwrap());

/// Reads an operand or returns `None` at the end of the input. Most operands are small numbers and
/// addresses of paths, because they cover more code than other values.
fn operand(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let choice = bytes.next()?;
    Some(match choice {
        0..=119 => u64::from(choice % 12),
        120..=167 => u64::from(choice % 8) * 32,
        168..=215 => EDGES[usize::from(choice) % EDGES.len()],
        _ => (0..8).try_fold(0, |number, _| Some(number << 8 | u64::from(bytes.next()?)))?,
    })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let functions = guest::functions();
    let mut bytes = bytes.iter().copied();
    let mut script = guest::Script::new();
    script.bounds.time = Duration::from_secs(2);
    script.fds = vec![(5, Stream::bytes("more"))];
    script.paths(&PATHS);
    for _ in 0..CALLS {
        let Some(choice) = bytes.next() else { break };
        // The index after the last function selects `spawn`.
        let function = usize::from(choice) % (functions.len() + 1);
        if functions.get(function).is_some_and(|(name, _)| *name == WAITS) {
            continue;
        }
        let operands: Vec<u64> = (0..OPERANDS).map_while(|_| operand(&mut bytes)).collect();
        script.raw(function as u32, &operands);
    }
    let files = Files::overlay(None, 1 << 20);
    files.write("a/b", b"content").unwrap();
    let result = RUNTIME.block_on(script.run(&Arc::new(files)));
    if let CommandOutcome::Killed(KillReason::Crash(reason)) = &result.outcome {
        assert!(!reason.contains("host"), "{reason}");
    }
});
