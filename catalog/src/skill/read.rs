//! Reads skills from folders whose author may be hostile: nothing is followed, and everything is
//! bounded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{SKILL_FILE, Skill, front};
use crate::folder::{regular_file, unreadable, utf8};
use crate::limits::{
    MAX_SKILL_BYTES, MAX_SKILL_DEPTH, MAX_SKILL_FILE, MAX_SKILL_FILES, MAX_SKILLS,
};
use crate::problem::{Fault, Problem};

/// Maximum number of entries of a folder of skills that are examined.
const MAX_ENTRIES: usize = 10_000;

/// Reads the skills in a folder, sorted by name: its subfolders with a `SKILL.md`, except hidden
/// ones. Returns the skills, and the problems with those that are left out. A folder that does not
/// exist has no skills. If `within` is given, a skill must be in that folder after links are
/// resolved.
#[must_use]
pub fn read_skills(folder: &Path, within: Option<&Path>) -> (Vec<Skill>, Vec<Problem>) {
    let problem = |path: &Path, fault| Problem::new(path.display().to_string(), None, fault);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return (Vec::new(), Vec::new());
        }
        Err(error) => return (Vec::new(), vec![problem(folder, unreadable(&error))]),
    };
    let is_within = |path: &Path| match within.map(Path::canonicalize) {
        None => true,
        Some(top) => top.is_ok_and(|top| path.canonicalize().is_ok_and(|at| at.starts_with(top))),
    };
    let entries = entries.take(MAX_ENTRIES + 1).flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    let mut problems = Vec::new();
    if paths.len() > MAX_ENTRIES {
        problems.push(problem(folder, Fault::SkillsTooMany));
    }
    paths.retain(|path| !is_hidden(path) && path.join(SKILL_FILE).symlink_metadata().is_ok());
    paths.sort();
    if paths.len() > MAX_SKILLS {
        problems.push(problem(folder, Fault::SkillsTooMany));
        paths.truncate(MAX_SKILLS);
    }
    let mut skills = Vec::new();
    for path in paths {
        if !is_within(&path) {
            problems.push(problem(&path, Fault::SkillLink));
            continue;
        }
        match skill(&path) {
            Ok(skill) => skills.push(skill),
            Err(problem) => problems.push(problem),
        }
    }
    (skills, problems)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Reads one skill.
pub(crate) fn skill(folder: &Path) -> Result<Skill, Problem> {
    let file = folder.join(SKILL_FILE);
    let problem = |line, fault| Problem::new(file.display().to_string(), line, fault);
    let bytes = regular_file(&file, MAX_SKILL_FILE)
        .map_err(|fault| match fault {
            Fault::TooLarge => Fault::SkillFileTooLarge,
            fault => fault,
        })
        .map_err(|fault| problem(None, fault))?;
    let text = utf8(bytes).map_err(|fault| problem(None, fault))?;
    let (front, instructions) =
        front::read(&text).map_err(|(line, fault)| problem(Some(line), fault))?;
    let name = folder.canonicalize().ok();
    let name = name.as_deref().unwrap_or(folder).file_name().unwrap_or_default().to_string_lossy();
    // A link may have another name than its target.
    let link = folder.file_name().unwrap_or_default().to_string_lossy();
    if front.name != *name && front.name != *link {
        let fault = Fault::SkillFolder { name: front.name, folder: link.into_owned() };
        return Err(problem(None, fault));
    }
    let mut content = Content {
        files: BTreeMap::new(),
        left: MAX_SKILL_BYTES,
        entries: MAX_SKILL_FILES,
        left_out: Vec::new(),
    };
    content.files.insert(SKILL_FILE.to_owned(), text.into_bytes().into());
    let whole = content.add_folder(folder, "", 0);
    whole.map_err(|fault| Problem::new(folder.display().to_string(), None, fault))?;
    let Content { files, left_out, .. } = content;
    Ok(Skill { folder: folder.to_owned(), front, instructions, files, left_out })
}

/// The files of a skill, while they are read.
struct Content {
    files: BTreeMap<String, Arc<[u8]>>,
    /// Maximum total size of the remaining files, in bytes.
    left: u64,
    /// Maximum number of the remaining entries, which are files, folders and links.
    entries: usize,
    left_out: Vec<Problem>,
}

impl Content {
    /// Adds the files in a folder and in those below it. `prefix` is the folder's path in the skill,
    /// and ends with `/` if it is not empty.
    fn add_folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), Fault> {
        if depth > MAX_SKILL_DEPTH {
            return Err(Fault::SkillTooDeep);
        }
        let entries = fs::read_dir(folder).map_err(|error| unreadable(&error))?;
        let mut paths: Vec<_> = entries
            .take(self.entries + 1)
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable(&error))?;
        self.entries = self.entries.checked_sub(paths.len()).ok_or(Fault::SkillTooMany)?;
        paths.retain(|path| !is_hidden(path));
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_str().map(str::to_owned);
            let kind = path.symlink_metadata().map(|data| data.file_type());
            let added = match (name, kind) {
                (None, _) => Err(Fault::SkillFileName),
                (_, Err(error)) => Err(unreadable(&error)),
                (Some(name), Ok(kind)) if kind.is_dir() => {
                    self.add_folder(&path, &format!("{prefix}{name}/"), depth + 1)?;
                    Ok(())
                }
                (Some(name), Ok(_)) => self.add_file(&path, format!("{prefix}{name}")),
            };
            match added {
                Ok(()) => {}
                Err(Fault::SkillTooLarge) => return Err(Fault::SkillTooLarge),
                Err(fault) => {
                    let shown = path.display().to_string();
                    self.left_out.push(Problem::new(shown, None, fault));
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, name: String) -> Result<(), Fault> {
        if name == SKILL_FILE {
            return Ok(());
        }
        let bytes = regular_file(path, self.left).map_err(|fault| match fault {
            Fault::TooLarge => Fault::SkillTooLarge,
            fault => fault,
        })?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        self.files.insert(name, bytes.into());
        Ok(())
    }
}
