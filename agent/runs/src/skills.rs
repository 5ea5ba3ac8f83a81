//! The port through which programs read the skills of a host.

use wattle_capability::skill::SkillReader;
use wattle_catalog::Skills;
use wattle_rt::{Code, Failure};

/// The skills of a host.
pub(crate) struct SkillTexts(pub(crate) Skills);

impl SkillReader for SkillTexts {
    fn read(&self, name: &str, file: &str) -> Result<Vec<u8>, Failure> {
        let missing = |reason| Failure::new(Code::ENOENT, reason);
        let Some(skill) = self.0.get(name) else {
            return Err(missing(self.0.unknown(name)));
        };
        if file.is_empty() {
            return Ok(self.0.page(name).unwrap_or_default().into_bytes());
        }
        skill.file(file).map(<[u8]>::to_vec).ok_or_else(|| {
            let file = wattle_rt::quote(file, MAX_QUOTED);
            missing(format!(
                "the skill `{name}` has no file {file}; its instructions are followed by a list of \
                 its files"
            ))
        })
    }
}

/// Maximum length of a path in a message, in characters.
const MAX_QUOTED: usize = 100;
