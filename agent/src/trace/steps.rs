//! Reading traces again, line by line: a trace of any size takes the memory of one line.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{STEPS_FILE, Step};
use crate::lines::{Line, LineReader};

/// How deep below a folder traces are looked for.
const DEPTH: usize = 12;

/// What was read, beside the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// How many lines are not lines of a trace.
    pub broken: usize,
    /// How many of them are longer than 4 MiB.
    pub long: usize,
}

/// Reads a trace, or all that are in a folder and below it, and gives each step to a function, in the order of the files and of their
/// lines. Links are not followed. A line that is not one of a trace is counted and passed over.
///
/// # Errors
/// If nothing is there, it cannot be read, or the function fails.
pub fn read<E: From<std::io::Error>>(path: &Path, mut step: impl FnMut(Step) -> Result<(), E>) -> Result<Read, E> {
    let mut read = Read::default();
    if path.is_dir() {
        read.folder(path, DEPTH, &mut step)?;
    } else {
        read.file(path, &mut step)?;
    }
    Ok(read)
}

/// What becomes of a step.
type Take<'a, E> = &'a mut dyn FnMut(Step) -> Result<(), E>;

impl Read {
    fn folder<E: From<std::io::Error>>(&mut self, folder: &Path, depth: usize, step: Take<'_, E>) -> Result<(), E> {
        let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_file() && entry.file_name() == STEPS_FILE {
                self.file(&entry.path(), step)?;
            } else if kind.is_dir() && depth > 0 && std::fs::read_dir(entry.path()).is_ok() {
                // A folder below that may not be looked into hides nothing but itself.
                self.folder(&entry.path(), depth - 1, step)?;
            }
        }
        Ok(())
    }

    fn file<E: From<std::io::Error>>(&mut self, path: &Path, step: Take<'_, E>) -> Result<(), E> {
        let mut lines = LineReader::of(File::open(path)?);
        while let Some((_, line)) = lines.next()? {
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
