//! Reading traces again.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{STEPS_FILE, Step};

/// How deep below a folder traces are looked for.
const DEPTH: usize = 12;

/// The lines of one or several traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The calls, in the order of the files and of their lines.
    pub steps: Vec<Step>,
    /// How many lines are none.
    pub broken: usize,
}

impl Steps {
    /// Reads a trace, or all that are in a folder and below it. Links are not followed. A line that is none is counted and passed over.
    ///
    /// # Errors
    /// Where nothing is there, or it cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Steps> {
        let mut steps = Steps::default();
        if path.is_dir() {
            steps.folder(path, DEPTH)?;
        } else {
            steps.file(path)?;
        }
        Ok(steps)
    }

    /// The steps of one run, or of those whose ids begin so.
    pub fn of_run<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |step| step.run_id.starts_with(run))
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> std::io::Result<()> {
        let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_file() && entry.file_name() == STEPS_FILE {
                self.file(&entry.path())?;
            } else if kind.is_dir() && depth > 0 {
                // A folder below that may not be looked into hides nothing but itself.
                _ = self.folder(&entry.path(), depth - 1);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> std::io::Result<()> {
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            let line = line?;
            match serde_json::from_slice::<Step>(&line) {
                Ok(step) if !step.tool.is_empty() => self.steps.push(step),
                _ => self.broken += usize::from(!line.trim_ascii().is_empty()),
            }
        }
        self.files.push(path.to_owned());
        Ok(())
    }
}
