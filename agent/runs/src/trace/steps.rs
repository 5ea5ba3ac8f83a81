//! The reader of traces. It reads line by line, so its memory use does not depend on the size of a
//! trace.

use std::fs::File;
use std::path::{Path, PathBuf};

use wattle_store::lines::{Line, LineReader};

use super::{STEPS_FILE, Step};

/// Maximum depth to which subfolders are searched for traces. The folder of all traces has the
/// paths of workdirs in it.
const DEPTH: usize = 64;

/// A summary of the files that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// Number of lines that were skipped because they are not trace lines.
    pub broken: usize,
    /// Number of lines longer than 4 MiB. They are included in `broken`.
    pub long: usize,
}

/// Reads a trace, or all traces in a folder and its subfolders, and passes each step to `step`.
/// Files are read in alphabetical order. Links are not followed. Invalid lines are counted and
/// skipped.
///
/// # Errors
/// If the path does not exist or cannot be read, or `step` fails.
pub fn read<E: From<std::io::Error>>(
    path: &Path,
    mut step: impl FnMut(Step) -> Result<(), E>,
) -> Result<ReadSummary, E> {
    let mut read = ReadSummary::default();
    if path.is_dir() {
        read.folder(path, DEPTH, &mut step)?;
    } else {
        read.file(path, &mut step)?;
    }
    Ok(read)
}

/// The function that receives the steps.
type OnStep<'a, E> = &'a mut dyn FnMut(Step) -> Result<(), E>;

impl ReadSummary {
    fn folder<E: From<std::io::Error>>(
        &mut self,
        folder: &Path,
        depth: usize,
        step: OnStep<'_, E>,
    ) -> Result<(), E> {
        let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_file() && entry.file_name() == STEPS_FILE {
                self.file(&entry.path(), step)?;
            } else if kind.is_dir() && depth > 0 && std::fs::read_dir(entry.path()).is_ok() {
                // An unreadable subfolder is skipped.
                self.folder(&entry.path(), depth - 1, step)?;
            }
        }
        Ok(())
    }

    fn file<E: From<std::io::Error>>(&mut self, path: &Path, step: OnStep<'_, E>) -> Result<(), E> {
        let mut lines = LineReader::of(File::open(path)?);
        while let Some((_, line)) = lines.next_line()? {
            let Line::Whole(line) = line else {
                (self.long, self.broken) = (self.long + 1, self.broken + 1);
                continue;
            };
            match serde_json::from_slice::<Step>(line) {
                Ok(found) if !found.tool.is_empty() => step(found)?,
                _ => self.broken += usize::from(!line.trim_ascii().is_empty()),
            }
        }
        self.files.push(path.to_owned());
        Ok(())
    }
}
