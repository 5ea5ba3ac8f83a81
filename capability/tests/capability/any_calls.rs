//! Fuzzes sequences of host calls with arbitrary operands. No call may cause a panic or access
//! memory outside the program's memory, and the host's memory use must stay within its limit.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::calls;

#[test]
fn no_sequence_of_calls_is_harmful() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Sleeping is harmless but slows the test down.
    let calls = tokio.block_on(calls::Calls::new(&["sys.sleep"]));
    let mut runner =
        TestRunner::new(Config { cases: 1_000, failure_persistence: None, ..Config::default() });
    let run = runner.run(&proptest::collection::vec(any::<u8>(), 0..200), |bytes| {
        tokio.block_on(calls.perform(&bytes));
        Ok(())
    });
    run.unwrap();
}
