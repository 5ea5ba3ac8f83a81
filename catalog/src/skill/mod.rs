//! Agent Skills: folders with instructions, files and scripts for certain tasks. A model reads the
//! name and the description of each, and the rest only when it uses the skill.
//!
//! A skill is a folder with the file `SKILL.md`: YAML front matter, and instructions in Markdown. A
//! skill is read once and kept in memory, so its content is what its [`hash`](Skill::hash)
//! identifies.

mod front;
mod read;
mod scripts;
mod set;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::problem::Problem;
use crate::rank::Field;

pub use front::{is_skill_name, skill_text};
pub use read::read_skills;
pub use scripts::{Script, ScriptKind};
pub use set::Skills;

/// The file with the front matter and the instructions of a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The folder of a skill's scripts.
pub const SCRIPTS_FOLDER: &str = "scripts";

/// Maximum length of a skill's description, in characters.
pub const MAX_SKILL_DESCRIPTION: usize = 1_024;

/// A skill with its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    folder: PathBuf,
    front: front::Front,
    /// The instructions, in Markdown.
    instructions: String,
    /// The files, with paths relative to the folder. They include `SKILL.md`.
    files: BTreeMap<String, Arc<[u8]>>,
    /// The problems with entries of the folder that are left out.
    left_out: Vec<Problem>,
}

impl Skill {
    /// Reads a skill from its folder. Links in the folder are not followed, and hidden entries are
    /// not read.
    ///
    /// # Errors
    /// If `SKILL.md` is missing or invalid, if the name in it is not the folder's, or if the folder
    /// has too many files, is too large or is nested too deeply.
    pub fn read(folder: &Path) -> Result<Skill, Problem> {
        read::skill(folder)
    }

    /// Returns the name, which is also the name of the folder.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.front.name
    }

    /// Returns the description, which says what the skill is for and when to use it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.front.description
    }

    /// Returns the license, if the front matter has one.
    #[must_use]
    pub fn license(&self) -> Option<&str> {
        self.front.license.as_deref()
    }

    /// Returns what the skill needs from its environment, if the front matter says so.
    #[must_use]
    pub fn compatibility(&self) -> Option<&str> {
        self.front.compatibility.as_deref()
    }

    /// Returns the additional properties that the author chose.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.front.metadata
    }

    /// Returns the tools that the author expects to be allowed. They are shown, but allow nothing.
    #[must_use]
    pub fn allowed_tools(&self) -> &[String] {
        &self.front.allowed_tools
    }

    /// Returns the keys of the front matter that the specification does not define.
    #[must_use]
    pub fn other_keys(&self) -> &[String] {
        &self.front.other_keys
    }

    /// Returns the instructions, in Markdown.
    #[must_use]
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the files with their paths, relative to the folder and sorted.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), &**content))
    }

    /// Returns the content of a file, or `None` if the skill has no such file. `path` is relative to
    /// the folder, and may begin with `./`.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path.trim_start_matches("./")).map(|content| &**content)
    }

    /// Returns the problems with entries of the folder that are left out, such as links.
    #[must_use]
    pub fn left_out(&self) -> &[Problem] {
        &self.left_out
    }

    /// Returns a hash of all files with their paths, in hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, content) in &self.files {
            hasher.update(blake3::hash(path.as_bytes()).as_bytes());
            hasher.update(blake3::hash(content).as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the search fields with their weights.
    fn fields(&self) -> Vec<Field<'_>> {
        vec![(4.0, self.name()), (2.0, self.description())]
    }
}
