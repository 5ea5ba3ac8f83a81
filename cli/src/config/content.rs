//! What a run gets from its workdir and from folders of skills, in addition to the settings.

use wattle_agent::host::catalog::{Problem, Skill};
use wattle_agent::host::machine::GuidanceFile;

/// The guidance files and the skills of a run. `crate::trust` reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The guidance files, nearest last.
    pub(crate) guidance: Vec<GuidanceFile>,
    /// The skills that runs may use. A skill replaces an earlier one of the same name.
    pub(crate) skills: Vec<Skill>,
    /// The problems with skills that cannot be read.
    pub(crate) problems: Vec<Problem>,
}
