//! The ignore files of a workdir: `.gitignore`, and `.wattleignore` with the same format.

use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{Entry, Files};

/// The names of ignore files. The rules of a later one take precedence.
pub const IGNORE_FILES: [&str; 2] = [".gitignore", ".wattleignore"];

/// Number of bytes that are read of an ignore file.
const MAX_BYTES: u64 = 256 << 10;

/// The rules for the entries of a folder: those of its ignore files and of the folders above it.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules(Vec<Arc<Gitignore>>);

impl IgnoreRules {
    /// Returns the rules for the entries of a folder. `self` contains the rules for the folder
    /// itself, and `folder` is its path from the root of the workdir, which is empty for the root.
    /// An ignore file that cannot be read has no rules.
    #[must_use]
    pub fn within(&self, files: &Files, folder: &str, entries: &[Entry]) -> IgnoreRules {
        let mut rules = self.clone();
        for name in IGNORE_FILES.iter().filter(|name| entries.iter().any(|one| one.name == **name))
        {
            let Ok(bytes) = files.read_at(&format!("{folder}/{name}"), 0, MAX_BYTES) else {
                continue;
            };
            let mut builder = GitignoreBuilder::new(format!("/{folder}"));
            for line in String::from_utf8_lossy(&bytes).lines() {
                // A line that is not a pattern has no effect.
                let _ = builder.add_line(None, line);
            }
            rules.0.extend(builder.build().ok().map(Arc::new));
        }
        rules
    }

    /// Returns true if the rules ignore the entry at `path`, from the root of the workdir.
    #[must_use]
    pub fn ignore(&self, path: &str, is_folder: bool) -> bool {
        let path = format!("/{path}");
        let mut found = self.0.iter().rev().map(|rules| rules.matched(&path, is_folder));
        found.find(|found| !found.is_none()).is_some_and(|found| found.is_ignore())
    }
}
