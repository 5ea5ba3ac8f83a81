//! Runs arbitrary text as a shell script, without commands and with low limits. Checks that the
//! script ends in time and that nothing panics.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use wattle_capability::files::Files;
use wattle_shell::{Bounds, NoCommands, Shell};

static SHELL: LazyLock<Shell> = LazyLock::new(|| {
    let bounds = Bounds {
        script: 64 << 10,
        commands: 200,
        parallel: 8,
        depth: 20,
        variables: 1 << 20,
        substitution: 64 << 10,
        words: 1_000,
        ..Bounds::default()
    };
    Shell::new(Arc::new(NoCommands), bounds)
});
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

libfuzzer_sys::fuzz_target!(|script: &str| {
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let output = RUNTIME.block_on(SHELL.capture(
        &files,
        script,
        "input\nlines\n",
        Some(Duration::from_millis(100)),
    ));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("bug in the host"), "{stderr}");
});
