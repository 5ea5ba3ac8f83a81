//! `skill`: instructions and files for certain tasks, which a program reads when it needs them.

use std::sync::Arc;

use wattle_rt::{Config, Failure, Run, capability};

capability! {
    /// Instructions and files for certain tasks.
    pub const SKILL: "skill" 1;

    /// Returns the instructions of a skill or, with a path, one of its files
    #[example = r#"(ret (skill.read "greet" "names.txt"))"# => "Ada\n"]
    #[prompt(omitted)]
    #[effect(reads)]
    #[touches(nothing)]
    fn read(name: str, file: opt_str) with SkillGrant -> ptr: bytes ! ENOENT = read;
}

/// The port to the skills of a run.
pub trait SkillReader: Send + Sync {
    /// Returns the instructions of a skill or, if `file` is not empty, the file with this path.
    ///
    /// # Errors
    /// `ENOENT` if there is no such skill or file.
    fn read(&self, name: &str, file: &str) -> Result<Vec<u8>, Failure>;
}

/// The `skill` grant: the skills of a run.
pub struct SkillGrant(pub Arc<dyn SkillReader>);

impl Config for SkillGrant {
    const CAPABILITIES: &'static [&'static str] = &["skill"];
}

fn read(
    skills: Arc<SkillGrant>,
    _run: &mut Run,
    name: &str,
    file: Option<&str>,
) -> Result<Vec<u8>, Failure> {
    skills.0.read(name, file.unwrap_or_default())
}
