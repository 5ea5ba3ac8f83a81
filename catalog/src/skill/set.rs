//! The skills of a host, with the programs of their scripts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use super::{SKILL_FILE, ScriptKind, Skill};
use crate::problem::{Fault, Problem};
use crate::{Catalog, Entry, Index, nearest_name};

/// Maximum number of files that the page of a skill lists.
const MAX_LISTED: usize = 100;

/// The prefix of program names that would otherwise be names of host functions.
const RESERVED_PREFIX: &str = "skill_";

/// The skills of a host. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    skills: Arc<BTreeMap<String, Arc<Skill>>>,
    /// The programs of the scripts, each with its skill's name.
    programs: Arc<Vec<(String, Entry)>>,
    problems: Arc<[Problem]>,
    /// The search index, built on first use.
    index: Arc<OnceLock<Index<Arc<Skill>>>>,
}

impl Skills {
    /// Creates a set of skills. A skill replaces an earlier one of the same name.
    ///
    /// A script becomes the program `SKILL.SCRIPT`, with `_` in place of `-`. If the skill has the
    /// name of a capability in `capabilities`, the program is called `skill_SKILL.SCRIPT`, because
    /// it would hide a host function. A script is left out if `catalog` has a program with its name.
    #[must_use]
    pub fn new(
        skills: impl IntoIterator<Item = Skill>,
        capabilities: &[&str],
        catalog: &Catalog,
    ) -> Skills {
        let skills: BTreeMap<String, Arc<Skill>> =
            skills.into_iter().map(|skill| (skill.name().to_owned(), Arc::new(skill))).collect();
        let (mut programs, mut problems): (Vec<(String, Entry)>, Vec<Problem>) = Default::default();
        for (name, skill) in &skills {
            let word = name.replace('-', "_");
            let starts_with_letter = word.starts_with(|c: char| c.is_ascii_lowercase());
            let is_free = starts_with_letter && !capabilities.contains(&word.as_str());
            let prefix = if is_free { word } else { format!("{RESERVED_PREFIX}{word}") };
            problems.extend(skill.left_out().iter().cloned());
            for program in skill.programs(&prefix) {
                let program = match program {
                    Ok(program) => program,
                    Err(problem) => {
                        problems.push(problem);
                        continue;
                    }
                };
                let taken = programs.iter().map(|(_, taken)| taken);
                let mut taken = taken.chain(catalog.get(program.name().as_str()).map(|p| &**p));
                match taken.find(|taken| taken.name() == program.name()) {
                    None => programs.push((name.clone(), program)),
                    Some(other) => {
                        let (at, other) =
                            (program.origin().to_string(), other.origin().to_string());
                        let name = program.name().to_string();
                        let fault = Fault::SkillScriptTwice { name, other };
                        problems.push(Problem::new(at, None, fault));
                    }
                }
            }
        }
        Skills {
            skills: Arc::new(skills),
            programs: Arc::new(programs),
            problems: problems.into(),
            index: Arc::default(),
        }
    }

    /// Returns true if there are no skills.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the skills, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values().map(|skill| &**skill)
    }

    /// Returns the skill with this name, or `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name).map(|skill| &**skill)
    }

    /// Searches the skills by keywords. Returns the matching skills, most relevant first. `words`
    /// may be a whole message.
    #[must_use]
    pub fn search(&self, words: &str) -> Vec<&Skill> {
        let index = self.index.get_or_init(|| {
            Index::new(self.skills.values().map(|skill| (Arc::clone(skill), skill.fields())))
        });
        index.rank(words).into_iter().map(|(skill, _)| &**skill).collect()
    }

    /// Returns the programs of all scripts.
    pub fn programs(&self) -> impl Iterator<Item = &Entry> {
        self.programs.iter().map(|(_, program)| program)
    }

    /// Returns the programs of a skill's scripts.
    pub fn programs_of(&self, skill: &str) -> impl Iterator<Item = &Entry> {
        self.programs.iter().filter(move |(name, _)| name == skill).map(|(_, program)| program)
    }

    /// Returns the problems with scripts and other files that are left out.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the page of a skill for a model: its instructions, and a list of its files and
    /// programs. Returns `None` if there is no such skill.
    #[must_use]
    pub fn page(&self, name: &str) -> Option<String> {
        let skill = self.get(name)?;
        let mut page = format!("{}\n", skill.instructions());
        let files: Vec<&str> =
            skill.files().map(|(path, _)| path).filter(|path| *path != SKILL_FILE).collect();
        if files.is_empty() {
            return Some(page);
        }
        page.push_str("\n---\n");
        let more = match files.len().checked_sub(MAX_LISTED) {
            None | Some(0) => String::new(),
            Some(more) => format!(" … and {more} more"),
        };
        let listed: Vec<&str> = files.into_iter().take(MAX_LISTED).collect();
        _ = writeln!(
            page,
            "Files of this skill, which skill({name:?}, FILE) returns: {}{more}",
            listed.join(", ")
        );
        let programs: String = self
            .programs_of(name)
            .map(|program| format!("{} — {}\n", program.usage(), program.meta().description))
            .collect();
        if !programs.is_empty() {
            _ = write!(page, "Its scripts are these programs:\n{programs}");
        }
        for script in skill.scripts() {
            if let ScriptKind::Other(language) = script.kind {
                _ = writeln!(
                    page,
                    "{} is {language}, which does not run here: read it, and do the same in a \
                     program.",
                    script.path
                );
            }
        }
        Some(page)
    }

    /// Returns the reason why there is no skill with this name, which names similar ones.
    #[must_use]
    pub fn unknown(&self, name: &str) -> String {
        let names = || self.skills.keys().map(String::as_str);
        let near = nearest_name(name, names());
        let name = wattle_rt::quote(name, MAX_QUOTED);
        match near {
            Some(near) => format!("there is no skill {name}; the nearest is `{near}`"),
            None => {
                let names: Vec<&str> = names().take(MAX_LISTED).collect();
                format!("there is no skill {name}; the skills are {}", names.join(", "))
            }
        }
    }
}

/// Maximum length of a name in a message, in characters.
const MAX_QUOTED: usize = 64;
