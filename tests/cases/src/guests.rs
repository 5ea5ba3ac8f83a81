//! Compiled guests that tests share: the shell's commands, and the parsers of pages and filters.
//!
//! Each test of the `wattle` binary has its own home folder and therefore starts with an empty
//! cache. Compiling the guests for every test would take most of the test time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// File name prefixes of the compiled guests.
const GUESTS: [&str; 3] = ["commands-", "jq-", "pages-"];

/// The folder in which tests share compiled guests. The name of a compiled file contains the hashes
/// of the guest, the engine and its settings, so that no test gets another version.
pub struct SharedGuests(PathBuf);

impl SharedGuests {
    /// Returns the shared folder in the target folder, which is found from the path of the running
    /// test: `TARGET/PROFILE/deps/TEST`.
    ///
    /// # Panics
    /// If the path of the running program is not known.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test may panic")]
    pub fn in_target() -> SharedGuests {
        let test = std::env::current_exe().expect("a test knows its path");
        let target = test.ancestors().nth(3).unwrap_or(Path::new("."));
        SharedGuests(target.join("tmp/guests"))
    }

    /// Returns the path of the shared folder. A test that compiles guests in its own process uses it
    /// as the cache folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Waits until no other test is compiling the guests, and makes the other tests wait until the
    /// returned file is closed. Otherwise, tests that start at the same time would all compile them.
    ///
    /// # Errors
    /// If the folder cannot be created, or its file cannot be locked.
    pub fn lock(&self) -> io::Result<File> {
        std::fs::create_dir_all(&self.0)?;
        let file = File::create(self.0.join("compiling.lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Adds the shared guests to the cache in a home folder.
    pub fn lend(&self, home: &Path) {
        share(&self.0, &cache(home));
    }

    /// Adds the compiled guests in a home folder's cache to the shared folder.
    pub fn keep(&self, home: &Path) {
        share(&cache(home), &self.0);
    }

    /// Returns true if the path is that of a compiled guest.
    #[must_use]
    pub fn is_guest(path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| GUESTS.iter().any(|guest| name.starts_with(guest)))
            && path.parent().is_some_and(|folder| folder.ends_with(".cache/wattle"))
    }
}

fn cache(home: &Path) -> PathBuf {
    home.join(".cache/wattle")
}

/// Links or copies the compiled guests of a folder into another. A guest that cannot be shared is
/// compiled again.
fn share(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // The name of an incomplete file has an extension.
        let is_guest =
            |name: &str| GUESTS.iter().any(|guest| name.starts_with(guest)) && !name.contains('.');
        if !name.to_str().is_some_and(is_guest) || to.join(&name).exists() {
            continue;
        }
        let _ = std::fs::create_dir_all(to);
        if std::fs::hard_link(entry.path(), to.join(&name)).is_err() {
            // The folders are on different file systems. No test sees an incomplete copy.
            let draft = to.join(format!("{}.{}", name.display(), std::process::id()));
            let _ = std::fs::copy(entry.path(), &draft)
                .and_then(|_| std::fs::rename(&draft, to.join(&name)));
        }
    }
}
