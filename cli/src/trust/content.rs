//! The files for agents in a project's folders: the instructions in `AGENTS.md`, and the skills.
//!
//! Trust in them applies to their content, like trust in the project file, but to each by itself: a
//! change of one skill leaves the others trusted. Without trust, the text of an `AGENTS.md` is data,
//! and a skill is not used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wattle_agent::host::catalog::{Problem, SKILL_FILE, Skill, read_skills};
use wattle_agent::host::machine::GuidanceFile;

use super::record::Records;
use super::{State, command_for, pins};
use crate::config::{Config, Content, Places, regular_file, repository_folders};
use crate::fault::Fault;
use crate::output::{self, DIM, WARN, paint, visible};

/// The file with instructions for agents.
pub(crate) const AGENTS_FILE: &str = "AGENTS.md";

/// The folders of skills in a project's folder. A skill of a later one replaces one of the same name.
const PROJECT_SKILLS: &[&str] = &[".claude/skills", ".agents/skills"];

/// The folder of skills in the folder of the user's settings.
const USER_SKILLS: &str = "skills";

/// Maximum total size of the guidance files in a prompt, in bytes.
const MAX_GUIDANCE: usize = 32 << 10;

/// Everything that was found, trusted or not.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The files with instructions, nearest last.
    pub(crate) instructions: Vec<Instructions>,
    /// The skills. A skill replaces an earlier one of the same name, if both are used.
    pub(crate) skills: Vec<FoundSkill>,
    /// The problems with skills that cannot be read.
    pub(crate) problems: Vec<Problem>,
}

/// A file with instructions for agents.
#[derive(Debug)]
pub(crate) struct Instructions {
    /// The folder of the file, with links resolved.
    pub(crate) folder: PathBuf,
    /// The text, or its beginning.
    text: String,
    /// The reason why the text is not whole, if it is not.
    pub(crate) cut: Option<String>,
    /// The hash of the bytes that were read.
    pub(crate) hash: String,
    /// The state of trust in the file.
    pub(crate) state: State,
}

/// A skill, and the place where it was found.
#[derive(Debug)]
pub(crate) struct FoundSkill {
    /// The skill.
    pub(crate) skill: Skill,
    /// The hash of its files.
    pub(crate) hash: String,
    /// The place.
    pub(crate) source: Source,
    /// The state of trust in the skill.
    pub(crate) state: State,
}

/// The place of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The folder of the user's settings.
    User,
    /// A folder of the project, and the skill's path in it.
    Project(PathBuf, String),
    /// A folder that the setting `skills` names.
    Setting,
}

impl Source {
    /// Returns the printed name.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Source::User => "user",
            Source::Project(..) => "project",
            Source::Setting => "setting",
        }
    }
}

/// A file or a skill of a project, about which the user decides.
struct Item<'a> {
    folder: &'a Path,
    /// The path of the file or the skill in the folder.
    place: &'a str,
    hash: &'a str,
    state: &'a State,
    /// A description for the question.
    about: String,
}

impl Found {
    /// Reads the files for agents of a workdir.
    ///
    /// # Errors
    /// If the records of trust cannot be read.
    pub(crate) fn of_project(workdir: &Path, places: &Places) -> Result<Found, Fault> {
        let mut found = Found::default();
        found.add_project(workdir, true);
        found.add_states(&Records::open(places)?);
        Ok(found)
    }

    /// Reads the files for agents of a workdir, if `workdir` is given, and the skills of the user
    /// and of the settings.
    ///
    /// # Errors
    /// If the records of trust cannot be read.
    pub(crate) fn read(
        config: &Config,
        workdir: Option<&Path>,
        places: &Places,
    ) -> Result<Found, Fault> {
        let mut found = Found::default();
        if let Some(folder) = places.user_file.as_deref().and_then(Path::parent) {
            found.add_skills(&folder.join(USER_SKILLS), None, |_| Source::User);
        }
        if let Some(workdir) = workdir {
            found.add_project(workdir, config.agents_md.value);
        }
        for folder in &config.skills.value {
            found.add_setting(folder);
        }
        found.add_states(&Records::open(places)?);
        Ok(found)
    }

    fn add_project(&mut self, workdir: &Path, reads_instructions: bool) {
        for folder in repository_folders(workdir).iter().rev() {
            if reads_instructions {
                self.instructions.extend(Instructions::read(folder));
            }
            for place in PROJECT_SKILLS {
                self.add_skills(&folder.join(place), Some(folder), |skill| {
                    Source::Project(folder.clone(), format!("{place}/{}", skill.name()))
                });
            }
        }
    }

    /// Adds the skills of a folder that the setting `skills` names, which may be a skill itself.
    fn add_setting(&mut self, folder: &Path) {
        if folder.join(SKILL_FILE).symlink_metadata().is_ok() {
            match Skill::read(folder) {
                Ok(skill) => self.add(skill, Source::Setting),
                Err(problem) => self.problems.push(problem),
            }
        } else if folder.is_dir() {
            self.add_skills(folder, None, |_| Source::Setting);
        } else {
            self.problems.push(Problem::no_folder(folder));
        }
    }

    fn add_skills(
        &mut self,
        folder: &Path,
        within: Option<&Path>,
        source: impl Fn(&Skill) -> Source,
    ) {
        let (skills, problems) = read_skills(folder, within);
        self.problems.extend(problems);
        for skill in skills {
            let source = source(&skill);
            self.add(skill, source);
        }
    }

    /// Adds a skill. One folder under two paths is one skill, at the later path.
    fn add(&mut self, skill: Skill, source: Source) {
        let real = |skill: &Skill| skill.folder().canonicalize().ok();
        let own = real(&skill);
        self.skills.retain(|known| own.is_none() || real(&known.skill) != own);
        let hash = skill.hash();
        // What is not in the project is the operator's.
        self.skills.push(FoundSkill { skill, hash, source, state: State::NotNeeded });
    }

    fn add_states(&mut self, records: &Records) {
        for file in &mut self.instructions {
            file.state = records.state_of(&file.folder, AGENTS_FILE, &file.hash);
        }
        for skill in &mut self.skills {
            if let Source::Project(folder, place) = &skill.source {
                skill.state = records.state_of(folder, place, &skill.hash);
            }
        }
    }

    /// Returns the files and skills of the project.
    fn items(&self) -> Vec<Item<'_>> {
        let files = self.instructions.iter().map(|file| Item {
            folder: &file.folder,
            place: AGENTS_FILE,
            hash: &file.hash,
            state: &file.state,
            about: "instructions for agents".to_owned(),
        });
        let skills = self.skills.iter().filter_map(|found| match &found.source {
            Source::Project(folder, place) => Some(Item {
                folder,
                place,
                hash: &found.hash,
                state: &found.state,
                about: format!("skill: {}", found.skill.description()),
            }),
            Source::User | Source::Setting => None,
        });
        files.chain(skills).collect()
    }

    /// Returns true if the project has files for agents.
    pub(crate) fn has_items(&self) -> bool {
        !self.items().is_empty()
    }

    /// Records the user's decision about all files and skills of the project whose state `chosen`
    /// accepts.
    ///
    /// # Errors
    /// If the records cannot be written.
    pub(crate) fn record(
        &mut self,
        places: &Places,
        trusted: bool,
        chosen: impl Fn(&State) -> bool,
    ) -> Result<(), Fault> {
        let records = Records::change(places, |records| {
            for item in self.items().iter().filter(|item| chosen(item.state)) {
                records.set_content(item.folder, item.place, item.hash, trusted);
            }
            records.clone()
        })?;
        self.add_states(&records);
        Ok(())
    }

    /// Asks the user at the terminal about what is new or has changed. Without a terminal, warns.
    fn ask(&mut self, places: &Places) {
        let is_open = |state: &State| matches!(state, State::Unknown | State::Changed(_));
        if crate::ask::is_terminal() && self.items().iter().any(|item| is_open(item.state)) {
            self.list_open();
            // If the terminal cannot be read, the answer is no.
            let reply = crate::stdin::lock().answer(None).ok().flatten().unwrap_or_default();
            let kept = self.record(places, crate::ask::is_yes(&reply), is_open);
            kept.unwrap_or_else(|fault| output::warn(fault.message()));
        }
        self.warn();
    }

    fn list_open(&self) {
        output::note(&paint(WARN, "this project has files for agents that need your trust:"));
        for item in self.items() {
            let change = match item.state {
                State::Unknown => "",
                State::Changed(_) => " has changed since you trusted it",
                _ => continue,
            };
            output::note(&format!(
                "  {}{change} {}",
                visible(&item.folder.join(item.place).display().to_string()),
                paint(DIM, &format!("({})", short(item.hash)))
            ));
            output::note(&format!("    {}", paint(DIM, &visible(&item.about))));
        }
        output::note(
            "use them? y: yes, until they change; anything else: read AGENTS.md as data, and use \
             no skill of the list",
        );
    }

    /// Warns about each folder whose files for agents are not trusted.
    fn warn(&self) {
        let items = self.items();
        let folders: BTreeSet<&Path> = items.iter().map(|item| item.folder).collect();
        for folder in folders {
            let own = items.iter().filter(|item| item.folder == folder && !item.state.is_trusted());
            let (files, skills): (Vec<&Item<'_>>, Vec<&Item<'_>>) =
                own.partition(|item| item.place == AGENTS_FILE);
            let why = |items: &[&Item<'_>]| {
                let is_changed = |item: &&Item<'_>| matches!(item.state, State::Changed(_));
                if items.iter().any(is_changed) {
                    "has changed since you trusted it"
                } else {
                    "is not trusted"
                }
            };
            let command = command_for(folder);
            if !files.is_empty() {
                output::warn(&format!(
                    "`{}` {}: it is read as data, not as instructions; if you trust it: {command}",
                    folder.join(AGENTS_FILE).display(),
                    why(&files)
                ));
            }
            if !skills.is_empty() {
                let names: Vec<String> =
                    skills.iter().map(|item| format!("`{}`", item.place)).collect();
                let which = if skills.len() == 1 { "it" } else { "one of them" };
                output::warn(&format!(
                    "skills in `{}` are not used: {}; {which} {}; if you trust them: {command}",
                    folder.display(),
                    names.join(", "),
                    why(&skills)
                ));
            }
        }
    }

    /// Returns what a run gets.
    pub(crate) fn into_content(self, workdir: &Path) -> Content {
        let skills = self.skills.into_iter().filter(|found| found.state.is_trusted());
        Content {
            guidance: guidance(self.instructions, workdir),
            skills: skills.map(|found| found.skill).collect(),
            problems: self.problems,
        }
    }
}

/// Returns the beginning of a hash for display.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Adds the files for agents and the skills to the settings of a command that starts runs. Asks the
/// user about those of the project that are new or have changed, or warns if there is no terminal.
///
/// # Errors
/// If the records of trust cannot be read.
pub(crate) fn with_content(config: Config) -> Result<Config, Fault> {
    let root = config.root.value.clone();
    with_content_of(config, Some(&root))
}

/// Adds the files for agents of `workdir`, if it is given, and the skills to the settings like
/// [`with_content`].
///
/// # Errors
/// If the records of trust cannot be read.
pub(crate) fn with_content_of(config: Config, workdir: Option<&Path>) -> Result<Config, Fault> {
    let places = Places::of_user();
    let mut found = Found::read(&config, workdir, &places)?;
    found.ask(&places);
    let content = found.into_content(&config.root.value).into();
    Ok(Config { content, ..config })
}

/// Adds the files for agents and the skills to the settings of a command that only looks at them.
/// Nobody is asked.
///
/// # Errors
/// If the records of trust cannot be read.
pub(crate) fn with_trusted_content(config: Config) -> Result<Config, Fault> {
    let found = Found::read(&config, Some(&config.root.value), &Places::of_user())?;
    let content = found.into_content(&config.root.value).into();
    Ok(Config { content, ..config })
}

impl Instructions {
    /// Reads the instructions in a folder, whose links are resolved. Returns `None` if there are
    /// none. A link is followed only within the folder.
    fn read(folder: &Path) -> Option<Instructions> {
        let path = folder.join(AGENTS_FILE);
        let is_link = path.symlink_metadata().ok()?.is_symlink();
        let real = if is_link { path.canonicalize().ok() } else { Some(path.clone()) };
        let real = real.filter(|real| real.starts_with(folder));
        let Some((parent, name)) =
            real.as_deref().and_then(|real| Some((real.parent()?, real.file_name()?.to_str()?)))
        else {
            let why = "it is a link that leads out of its folder";
            output::warn(&format!("`{}` is not read: {why}", path.display()));
            return None;
        };
        let bytes = match regular_file::beginning_in_folder(parent, name, MAX_GUIDANCE as u64) {
            Ok(bytes) => bytes?,
            Err(why) => {
                output::warn(&format!("`{}` is not read: {why}", path.display()));
                return None;
            }
        };
        let hash = pins::hash(&bytes.bytes);
        let (text, mut cut) = match String::from_utf8(bytes.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let end = error.utf8_error().valid_up_to();
                // A character may be cut where the reading ends.
                let is_end = bytes.is_cut && error.utf8_error().error_len().is_none();
                let text = error.into_bytes().get(..end).map(<[u8]>::to_vec).unwrap_or_default();
                let cut = (!is_end).then(|| format!("the file is not UTF-8 at byte {end}"));
                (String::from_utf8(text).unwrap_or_default(), cut)
            }
        };
        if bytes.is_cut && cut.is_none() {
            cut = Some(too_long());
        }
        let text = text.trim_start_matches('\u{feff}').to_owned();
        let is_empty = text.trim().is_empty() && cut.is_none();
        let (folder, state) = (folder.to_owned(), State::Unknown);
        (!is_empty).then_some(Instructions { folder, text, cut, hash, state })
    }
}

fn too_long() -> String {
    format!("all of these files together may have {} KiB", MAX_GUIDANCE >> 10)
}

/// Returns the guidance files of a prompt. If they are too large in total, the trusted ones and the
/// nearest ones take precedence.
fn guidance(files: Vec<Instructions>, workdir: &Path) -> Vec<GuidanceFile> {
    let mut left = MAX_GUIDANCE;
    let workdir = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
    let mut numbered: Vec<(usize, Instructions)> = files.into_iter().enumerate().collect();
    numbered.sort_by_key(|(at, file)| (!file.state.is_trusted(), std::cmp::Reverse(*at)));
    let mut guidance: Vec<(usize, GuidanceFile)> = Vec::new();
    for (at, file) in numbered {
        let Instructions { folder, mut text, mut cut, state, .. } = file;
        if text.len() > left {
            text.truncate(text.floor_char_boundary(left));
            cut = Some(too_long());
        }
        left -= text.len();
        let above = workdir.strip_prefix(&folder).map_or(0, |below| below.components().count());
        let path = format!("{}{AGENTS_FILE}", "../".repeat(above));
        let is_trusted = state.is_trusted();
        guidance.push((at, GuidanceFile { path, text, cut, is_trusted }));
    }
    guidance.sort_by_key(|(at, _)| *at);
    guidance.into_iter().map(|(_, file)| file).collect()
}
