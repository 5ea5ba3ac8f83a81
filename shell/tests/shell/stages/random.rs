//! Tests that call random host functions with random operands. Every call ends, and none changes
//! anything outside the run.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{CommandOutcome, KillReason, Status, Stream};

use super::guest::{Script, functions};

/// Paths at known addresses in the guest's memory, 32 bytes apart.
const PATHS: [&str; 12] = [
    "a",
    "a/b",
    "a/b/c",
    "../outside",
    "/dev/stdin",
    "dev/null",
    "link",
    "a/../../x",
    "//a//",
    "_steps.jsonl",
    "\u{e9}\u{fffd}",
    "a/b/c/d/e/f/g",
];

fn operand() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..12,
        4 => (0u64..12).prop_map(|path| path * 32),
        3 => 1u64..40,
        1 => Just(u64::from(u32::MAX)),
        1 => Just(u64::from(i32::MAX.unsigned_abs())),
        1 => Just(u64::MAX),
        1 => Just(0xfff0),
        1 => any::<u64>(),
    ]
}

fn calls() -> impl Strategy<Value = Vec<(u32, Vec<u64>)>> {
    let count = functions().len() as u32;
    let poll = functions().iter().position(|(name, _)| *name == "poll_oneoff").unwrap() as u32;
    // A poll may wait forever. Polls that end are tested separately.
    let function = (0..count + 2).prop_filter("waits", move |function| *function != poll);
    proptest::collection::vec((function, proptest::collection::vec(operand(), 9)), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_calls_are_harmful(calls in calls(), through: bool) {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir_all(work.join("a/b")).unwrap();
        std::fs::write(work.join("a/b/c"), "content").unwrap();
        std::fs::write(dir.path().join("outside"), "outside").unwrap();
        std::os::unix::fs::symlink("../outside", work.join("link")).unwrap();
        let base = Files::open_base(&work).unwrap();
        let files = if through {
            Files::write_through(base)
        } else {
            Files::overlay(Some(base), OVERLAY_LIMIT)
        };

        let mut script = Script::new();
        script.bounds.time = Duration::from_secs(2);
        script.fds = vec![(5, Stream::bytes("more"))];
        script.paths(&PATHS);
        for (function, operands) in &calls {
            script.raw(*function, operands);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(20), script.run(&Arc::new(files))).await
        });
        let result = result.expect("the script ends");
        if let CommandOutcome::Killed(KillReason::Crash(why)) = &result.outcome {
            prop_assert!(!why.contains("host"), "{why}");
        }
        prop_assert_eq!(std::fs::read_to_string(dir.path().join("outside")).unwrap(), "outside");
        prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn no_subscription_is_harmful(
        subscriptions in proptest::collection::vec(subscription(), 0..40),
        count in operand(),
    ) {
        let (reader, _writer) = Stream::pipe();
        let mut script = Script::new();
        script.fds = vec![(5, reader)];
        script.open("dev/fd/5", 0, 2, 0);
        let mut clock = vec![0; 48];
        clock[24..32].copy_from_slice(&1_000_000u64.to_le_bytes());
        let whole = subscriptions.len() as u64 + 1;
        let (all, _) = script.text(&[clock, subscriptions.concat()].concat());
        script.call("poll_oneoff", &[all, 8192, whole, 0]);
        script.call("poll_oneoff", &[all, 8192, count.min(whole), 0]);
        script.call("poll_oneoff", &[all, count, whole, 0]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
        let result = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(20), script.run(&files)).await
        });
        prop_assert_eq!(
            result.expect("the script ends").outcome,
            CommandOutcome::Exited(Status(0))
        );
    }
}

/// Generates a subscription with a random descriptor, clock, time and flags.
fn subscription() -> impl Strategy<Value = Vec<u8>> {
    (0u8..4, operand(), operand(), operand(), any::<u8>()).prop_map(
        |(kind, what, time, precision, flags)| {
            let mut all = vec![0; 48];
            all[0] = kind;
            all[8] = kind;
            for (at, value) in [(16, what), (24, time), (32, precision)] {
                all[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            all[40] = flags;
            all
        },
    )
}
