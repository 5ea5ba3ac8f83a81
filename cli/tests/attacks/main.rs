//! Attacks on the `wattle` binary, as data. Each file `tests/attacks/CLASS.toml` contains one class
//! of attacks. Each row of a file describes an attack, or several attacks that differ in a few
//! values.
//!
//! Each attack runs in new folders: a home directory, a workdir, and a folder outside both. A
//! watcher observes the whole process tree. A row contains the attacker's goal, the expected
//! strings and exit codes, the files that may change, and the limits on memory and time. No attack
//! may read the file `outside/secret.txt`: its content must appear nowhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod attack;
mod files;
mod format;
mod process;
mod server;
mod text;
mod watch;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A lock that serializes the attacks, because the watcher observes all children of this process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/attacks"))
}

/// Runs every attack of a class and reports all failures.
fn class(name: &str) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    process::warm_up();
    // `ATTACK=TEXT` selects the attacks whose label contains the text.
    let only = std::env::var("ATTACK").ok();
    let attacks = format::read(&folder().join(format!("{name}.toml")));
    let chosen = attacks
        .iter()
        .filter(|attack| only.as_ref().is_none_or(|only| attack.label.contains(only)));
    let failed: Vec<String> = chosen
        .filter_map(|attack| {
            let faults = attack::run(attack);
            let shown = || {
                format!("{name}: {}\n  {}", attack.label, faults.join("\n").replace('\n', "\n  "))
            };
            (!faults.is_empty()).then(shown)
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} attacks:\n{}",
        failed.len(),
        attacks.len(),
        failed.join("\n")
    );
}

macro_rules! classes {
    ($($class:ident)*) => {
        $(#[test] fn $class() { class(stringify!($class)); })*

        #[test]
        fn every_class_runs_and_no_rows_are_lost() {
            let mut there: Vec<String> = std::fs::read_dir(folder())
                .unwrap()
                .map(|entry| {
                    let path = entry.unwrap().path();
                    path.file_stem().unwrap().to_str().unwrap().to_owned()
                })
                .collect();
            there.sort();
            let mut run = vec![$(stringify!($class)),*];
            run.sort_unstable();
            assert_eq!(there, run);
            let all = run
                .iter()
                .map(|name| format::read(&folder().join(format!("{name}.toml"))).len());
            let all: usize = all.sum();
            assert!(all >= LEAST, "{all} attacks");
        }
    };
}

/// Minimum number of attacks. A lower number means that rows have been lost.
const LEAST: usize = 1_100;

classes! {
    catalogs
    compile
    files
    git
    index
    injection
    ledger
    pages
    poison
    policy
    privilege
    project
    provider
    secrets
    sensitive
    server
    shell
    tenants
    terminal
}
