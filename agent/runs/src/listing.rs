//! The programs that are listed in a prompt.
//!
//! The list depends only on the catalog, so that all sessions of an agent have the same prompt,
//! which providers can cache. There is one exception: if the deployment adds
//! very many programs, part of the prompt also depends on the session's first message.

use std::collections::BTreeMap;

use wattle_capability::TRUSTED;
use wattle_capability::skill::SKILL;
use wattle_capability::tool::TOOL;
use wattle_catalog::{Catalog, Entry, Origin, Skills};
use wattle_machine::{
    ArgLine, Dialect, ProgramFamily, ProgramLine, ProgramList, SkillLine, SkillList,
};
use wattle_rt::Grants;

/// Maximum number of the deployment's own programs that a prompt describes. If there are more, the
/// prompt lists their families.
const MAX_DESCRIBED: usize = 100;

/// Minimum number of programs in a family whose names have no dot.
const MIN_FAMILY: usize = 3;

/// Maximum number of programs that are described because they match the first message, and of
/// skills.
const MAX_MATCHING: usize = 20;

/// Maximum total length of the descriptions of skills, in bytes. A prompt names the other skills.
const MAX_SKILLS: usize = 16 << 10;

/// The program that reads a skill.
const SKILL_PROGRAM: &str = "skill";

/// The built-in programs that come first in a prompt, because a model needs them for any task.
const BASE: &[&str] = &[
    "help",
    "shell",
    "search",
    "fetch",
    "web_search",
    "wattle",
    "run",
    "file_issue",
    "done",
    "git",
    "publish",
    "image",
];

/// The families of the built-in programs that are not in [`BASE`], in the order in which a prompt
/// lists them. The first word of a program's name is its family.
const FAMILIES: &[&str] = &["file", "text", "csv", "json", "http", "web", "date", "kv", "ai"];

/// The built-in programs that do the same as another one, a host function or a form. They can be
/// called, but no prompt lists them.
const TWINS: &[&str] = &[
    "vfs_read",
    "vfs_write",
    "web_text",
    "json_delete",
    "json_get",
    "json_merge",
    "json_set",
    "date_add",
    "date_diff",
    "date_format",
    "csv_from_json",
    "csv_to_json",
    "http_get",
    "http_get_all",
    "http_post",
    "http_request",
    "kv_delete",
    "kv_get",
    "kv_incr",
    "kv_list",
    "kv_set",
];

/// The built-in programs that only the host calls. No prompt lists them.
const HOSTS: &[&str] = &["current_time", "recall"];

/// The program that ends a run. Both dialects have a kind of call or a function of their own for it.
const DONE: &str = "done";

/// The programs that a prompt lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The built-in programs, sorted by family.
    built_in: Vec<ListedProgram>,
    /// The deployment's own programs, sorted by name.
    own: Vec<ListedProgram>,
    /// The deployment's own programs that match the first message, most relevant first. Empty if there
    /// are at most [`MAX_DESCRIBED`].
    matching: Vec<String>,
    /// The skills, if the agent is offered the program that reads them.
    skills: SkillList,
}

/// A program's line in the prompt, and the capabilities that a run needs for the program to be
/// listed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedProgram {
    line: ProgramLine,
    needs: Vec<&'static str>,
}

impl Listing {
    /// Chooses the programs and the skills that a prompt lists. The message matters only if the
    /// deployment adds more than 100 programs, or as many skills. It then determines which of them
    /// are described.
    #[must_use]
    pub fn choose(catalog: &Catalog, skills: &Skills, message: &str) -> Listing {
        let is_built_in = |entry: &&Entry| matches!(entry.origin(), Origin::BuiltIn(_));
        let entries = || catalog.iter().map(AsRef::<Entry>::as_ref);
        let mut built_in: Vec<&Entry> = entries()
            .filter(is_built_in)
            // The section on skills describes their program.
            .filter(|entry| !is_hosts(entry) && !is_twin(entry) && !is_skill_reader(entry))
            .collect();
        built_in.sort_by_key(|entry| (family(entry.name().as_str()), entry.name()));
        // The page of a skill describes the programs of its scripts.
        let is_own =
            |entry: &&Entry| !is_built_in(entry) && !matches!(entry.origin(), Origin::Skill(_));
        let own: Vec<&Entry> = entries().filter(is_own).collect();
        let matching = if own.len() <= MAX_DESCRIBED {
            Vec::new()
        } else {
            let found = catalog.search(message).into_iter().map(|entry| entry.as_ref());
            let found = found.filter(is_own).take(MAX_MATCHING);
            found.map(|entry| entry.name().to_string()).collect()
        };
        Listing {
            built_in: built_in.into_iter().map(program).collect(),
            own: own.into_iter().map(program).collect(),
            matching,
            skills: match catalog.get(SKILL_PROGRAM) {
                Some(_) => list_skills(skills, message),
                None => SkillList::default(),
            },
        }
    }

    /// Returns the skills listed in the prompt of a run with these grants.
    pub(crate) fn skills(&self, grants: &Grants) -> SkillList {
        if grants.allows(SKILL.name) { self.skills.clone() } else { SkillList::default() }
    }

    /// Returns the programs listed in the prompt of a run with these grants. In the plain dialect,
    /// no programs are listed.
    pub(crate) fn programs(&self, grants: &Grants, dialect: Dialect) -> ProgramList {
        if dialect == Dialect::Plain {
            return ProgramList::default();
        }
        let visible = |listed: &&ListedProgram| listed.needs.iter().all(|name| grants.allows(name));
        let built_in = self.built_in.iter().filter(visible);
        let built_in = built_in.map(|listed| &listed.line).filter(|line| line.name != DONE);
        let own = self.own.iter().filter(visible);
        let own: Vec<&ProgramLine> = own.map(|listed| &listed.line).collect();
        let matching =
            self.matching.iter().filter_map(|name| own.iter().find(|line| line.name == *name));
        let matching = matching.map(|line| (*line).clone()).collect();
        let is_long = own.len() > MAX_DESCRIBED;
        ProgramList {
            built_in: built_in.cloned().collect(),
            families: if is_long { families(&own) } else { Vec::new() },
            own: if is_long { Vec::new() } else { own.into_iter().cloned().collect() },
            matching,
        }
    }
}

/// Groups programs by the beginnings of their names: up to the first dot or, if at least three
/// programs have it, up to the first `_`. The programs without a family come last.
fn families(programs: &[&ProgramLine]) -> Vec<ProgramFamily> {
    let prefix = |line: &ProgramLine, end: char| {
        line.name.split_once(end).map(|(prefix, _)| format!("{prefix}{end}"))
    };
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    for word in programs.iter().filter_map(|line| prefix(line, '_')) {
        *words.entry(word).or_default() += 1;
    }
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in programs {
        let word = || prefix(line, '_').filter(|word| words.get(word) >= Some(&MIN_FAMILY));
        let family = prefix(line, '.').or_else(word).unwrap_or_default();
        let name = line.name.strip_prefix(&family).unwrap_or(&line.name).to_owned();
        families.entry(family).or_default().push(name);
    }
    let without = families.remove("").map(|names| (String::new(), names));
    let families = families.into_iter().chain(without);
    families.map(|(prefix, names)| ProgramFamily { prefix, names }).collect()
}

/// Returns true if only the host calls the program. Such a program is not offered to a model.
pub(crate) fn is_hosts(entry: &Entry) -> bool {
    matches!(entry.origin(), Origin::BuiltIn(_)) && HOSTS.contains(&entry.name().as_str())
}

fn is_skill_reader(entry: &Entry) -> bool {
    entry.name().as_str() == SKILL_PROGRAM
}

fn is_twin(entry: &Entry) -> bool {
    TWINS.contains(&entry.name().as_str())
}

/// Returns a sort key for a built-in program. Programs in [`BASE`] come first, in the order of that
/// list. The others are ordered by family.
fn family(name: &str) -> (usize, usize) {
    if let Some(at) = BASE.iter().position(|base| *base == name) {
        return (0, at);
    }
    let word = name.split('_').next().unwrap_or_default();
    let family = FAMILIES.iter().position(|family| *family == word);
    (1 + family.unwrap_or(FAMILIES.len()), 0)
}

/// Divides the skills into those that are described and those that are only named.
fn list_skills(skills: &Skills, message: &str) -> SkillList {
    let line = |skill: &wattle_catalog::Skill| SkillLine {
        name: skill.name().to_owned(),
        description: skill.description().to_owned(),
    };
    let mut list = SkillList::default();
    let mut left = MAX_SKILLS;
    for skill in skills.iter() {
        let size = skill.description().len();
        let is_described = list.named.is_empty() && list.described.len() < MAX_DESCRIBED;
        match left.checked_sub(size).filter(|_| is_described) {
            Some(rest) => {
                left = rest;
                list.described.push(line(skill));
            }
            None => list.named.push(skill.name().to_owned()),
        }
    }
    if !list.named.is_empty() {
        let found = skills.search(message).into_iter();
        let found = found.filter(|skill| list.named.iter().any(|name| name == skill.name()));
        list.matching = found.take(MAX_MATCHING).map(line).collect();
    }
    list
}

fn program(entry: &Entry) -> ListedProgram {
    let uses = entry.meta().uses.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    let rare = TRUSTED.iter().copied().chain([TOOL.name]);
    ListedProgram { line: line(entry), needs: rare.filter(|name| uses.contains(name)).collect() }
}

fn line(entry: &Entry) -> ProgramLine {
    let args = entry.meta().args.iter().map(|arg| ArgLine {
        name: arg.name.clone(),
        type_hint: arg.shown_format().to_owned(),
        optional: arg.default.is_some(),
    });
    // The names and arguments of built-in programs are self-explanatory; `help` shows the details.
    let description = match entry.origin() {
        Origin::BuiltIn(_) => String::new(),
        _ => entry.meta().description.clone(),
    };
    ProgramLine {
        name: entry.name().to_string(),
        args: args.collect(),
        result: entry.meta().result.clone(),
        description,
    }
}
