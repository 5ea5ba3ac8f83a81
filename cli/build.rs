//! Determines the version that `wattle --version` prints: the version of the package, and the commit
//! if the variable `WATTLE_COMMIT` or `git` names it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=WATTLE_COMMIT");
    let named = std::env::var("WATTLE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| {
        // A new commit changes one of these files.
        for name in ["HEAD", "logs/HEAD"] {
            println!("cargo:rerun-if-changed={}", git(&["rev-parse", "--git-path", name])?);
        }
        git(&["rev-parse", "--short=10", "HEAD"])
    });
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=WATTLE_BUILD_VERSION={version}{commit}");
}

/// Returns the output of a git command, or `None` without git or outside of a repository.
fn git(args: &[&str]) -> Option<String> {
    let done = Command::new("git").args(args).output().ok().filter(|done| done.status.success())?;
    let text = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
