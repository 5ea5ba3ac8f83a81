//! The agent's loop as a component, which `just component` builds.

use std::path::Path;

/// Returns the binary of the component `engine.wasm`, or `None` if it is not built. Then a test has
/// nothing to compare with, and says so. Where `CI` is set, a missing component fails the test.
///
/// # Panics
/// If the component is not built, but must be.
#[must_use]
#[allow(clippy::print_stderr, reason = "a person must see that nothing was tested")]
pub fn component() -> Option<Vec<u8>> {
    let test = std::env::current_exe().ok()?;
    let path = test.ancestors().nth(3).unwrap_or(Path::new(".")).join("engine.wasm");
    let binary = std::fs::read(&path).ok();
    if binary.is_none() {
        let missing =
            format!("skipped: there is no {}; `just component` builds it", path.display());
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("{missing}");
    }
    binary
}
