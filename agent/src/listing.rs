//! Chooses the programs that a prompt lists.

use std::collections::BTreeSet;

use wattle_capability::TRUSTED;
use wattle_catalog::{Catalog, Entry, Origin};
use wattle_machine::{ArgLine, ProgramLine};
use wattle_rt::Grants;

/// Maximum number of programs that a prompt lists.
const MAX_NAMED: usize = 60;

/// Maximum number of programs of a catalog in which every program is offered as a function.
/// Endpoints accept at most 128 functions.
const MAX_OFFERED: usize = 100;

/// The base tools, which every prompt lists: what a model needs for any task, and the program that
/// finds the others.
const BASE: &[&str] = &[
    "help",
    "shell",
    "search",
    "fetch",
    "web_search",
    "wattle",
    "file_issue",
    "vfs_read",
    "vfs_write",
    "run",
    "done",
    "git",
    "publish",
    "image",
];

/// The programs that a prompt lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    programs: Vec<ListedProgram>,
    /// Number of programs that the prompt does not list.
    more: usize,
    /// If true, all programs are offered as functions; otherwise only the listed ones.
    offers_all: bool,
}

/// A program's line, and the trusted capabilities that a run needs for the program to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedProgram {
    line: ProgramLine,
    trusted: Vec<&'static str>,
}

impl Listing {
    /// Chooses the programs of a prompt. A catalog of at most 60 programs is listed in full. The
    /// listing of a larger one contains the base tools, then the programs that match the message,
    /// then others by name.
    #[must_use]
    pub fn choose(catalog: &Catalog, message: &str) -> Listing {
        if catalog.len() <= MAX_NAMED {
            return Listing {
                programs: catalog.iter().map(|entry| program(entry)).collect(),
                more: 0,
                offers_all: true,
            };
        }
        let base = BASE.iter().filter_map(|name| catalog.get(name));
        let relevant = base.chain(catalog.search(message)).chain(catalog.iter());
        let mut named = BTreeSet::new();
        for entry in relevant {
            if named.len() == MAX_NAMED {
                break;
            }
            named.insert(entry.name());
        }
        let programs =
            catalog.iter().filter(|entry| named.contains(entry.name())).map(|entry| program(entry));
        let offers_all = catalog.len() <= MAX_OFFERED;
        Listing { programs: programs.collect(), more: catalog.len() - named.len(), offers_all }
    }

    /// Returns true if this program is offered as a function.
    pub(crate) fn offers(&self, program: &str) -> bool {
        self.offers_all || self.programs.iter().any(|listed| listed.line.name == program)
    }

    /// Returns true if all programs of the catalog are offered as functions.
    pub(crate) fn offers_all(&self) -> bool {
        self.offers_all
    }

    /// Returns the number of programs that the prompt does not list.
    pub(crate) fn more(&self) -> usize {
        self.more
    }

    /// Returns the listed programs that a run with these grants may see.
    pub(crate) fn visible(&self, grants: &Grants) -> impl Iterator<Item = &ProgramLine> {
        let may_see =
            |listed: &&ListedProgram| listed.trusted.iter().all(|name| grants.allows(name));
        self.programs.iter().filter(may_see).map(|listed| &listed.line)
    }
}

fn program(entry: &Entry) -> ListedProgram {
    let uses = entry.meta().uses.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    ListedProgram {
        line: line(entry),
        trusted: TRUSTED.iter().copied().filter(|name| uses.contains(name)).collect(),
    }
}

fn line(entry: &Entry) -> ProgramLine {
    let args = entry.meta().args.iter().map(|arg| ArgLine {
        name: arg.name.clone(),
        type_hint: arg.shown_format().to_owned(),
        optional: arg.default.is_some(),
    });
    // The names and arguments of built-in programs say what they do; `help` has the rest.
    let description = match entry.origin() {
        Origin::BuiltIn(_) => String::new(),
        _ => entry.meta().description.clone(),
    };
    ProgramLine { name: entry.name().to_string(), args: args.collect(), description }
}
