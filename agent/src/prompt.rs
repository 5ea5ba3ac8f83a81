//! What the system prompt is made from: the functions that are granted, the catalog, the codes, the bounds.

use std::collections::BTreeSet;

use wattle_capability::TRUSTED;
use wattle_catalog::{Catalog, Entry, Origin};
use wattle_machine::{
    ArgLine, CapabilityPart, CodeLine, Dialect, FunctionLine, Limits, ProgramLine, PromptParts, Withheld,
};
use wattle_rt::{Capability, Code, Function, Grants, PromptDetail, Runtime};

use crate::host::Settings;
use crate::wiring;

/// How many programs a prompt names.
const NAMED: usize = 60;

/// Up to how many programs are all offered as functions; endpoints take 128 functions at most.
const OFFERED: usize = 100;

/// The base tools, which are always named: what a model needs for any task, and the program that finds the others.
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

/// The programs that a prompt names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    programs: Vec<Listed>,
    /// How many there are besides.
    more: usize,
    /// Whether all are offered as functions; else those that the prompt names.
    offers_all: bool,
}

/// A program's line, and what a run must be trusted with to be shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    line: ProgramLine,
    trusted: Vec<&'static str>,
}

impl Listing {
    /// All programs of the catalog, or of more than 60 the base tools and those that the message is about, filled up by name.
    #[must_use]
    pub fn choose(catalog: &Catalog, message: &str) -> Listing {
        if catalog.len() <= NAMED {
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
            if named.len() == NAMED {
                break;
            }
            named.insert(entry.name());
        }
        let programs = catalog.iter().filter(|entry| named.contains(entry.name())).map(|entry| program(entry));
        let offers_all = catalog.len() <= OFFERED;
        Listing { programs: programs.collect(), more: catalog.len() - named.len(), offers_all }
    }

    /// Whether that program is offered as a function.
    pub(crate) fn offers(&self, program: &str) -> bool {
        self.offers_all || self.programs.iter().any(|listed| listed.line.name == program)
    }
}

fn program(entry: &Entry) -> Listed {
    let uses = entry.meta().uses.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    Listed { line: line(entry), trusted: TRUSTED.iter().copied().filter(|name| uses.contains(name)).collect() }
}

fn line(entry: &Entry) -> ProgramLine {
    let args = entry.meta().args.iter().map(|arg| ArgLine {
        name: arg.name.clone(),
        type_hint: arg.type_hint.to_string(),
        optional: arg.default.is_some(),
    });
    // Those that come along have names and arguments that tell what they do, and `help` for the rest.
    let description = match entry.origin() {
        Origin::BuiltIn(_) => String::new(),
        _ => entry.meta().description.clone(),
    };
    ProgramLine { name: entry.name().to_string(), args: args.collect(), description }
}

/// Gathers the parts from what is really there.
pub(crate) fn parts(
    runtime: &Runtime,
    settings: &Settings,
    grants: &Grants,
    listing: &Listing,
    dialect: Dialect,
) -> PromptParts {
    let (granted, withheld): (Vec<&Capability>, Vec<&Capability>) =
        runtime.capabilities().iter().partition(|c| grants.allows(c.name));
    // A plain run is not told of what takes a trusted one: there is nothing that it could do about it.
    let withheld = withheld.iter().filter(|c| !TRUSTED.contains(&c.name));
    let programs = listing.programs.iter().filter(|program| program.trusted.iter().all(|name| grants.allows(name)));
    let part = |capability: &&Capability| {
        let (seldom, shown): (Vec<&Function>, Vec<&Function>) =
            capability.functions.iter().partition(|function| function.prompt_detail == PromptDetail::Name);
        let line = |function: &&Function| {
            let about = if function.prompt_detail == PromptDetail::Sentence {
                function.about.to_owned()
            } else {
                String::new()
            };
            FunctionLine { usage: function.signature.usage(), about }
        };
        CapabilityPart {
            name: capability.name.to_owned(),
            about: capability.about.to_owned(),
            functions: shown.iter().map(line).collect(),
            seldom: seldom.iter().map(|function| function.name.to_owned()).collect(),
        }
    };
    let codes = Code::ALL.iter().filter_map(|code| {
        let (name, meaning) = (code.name()?.to_owned(), code.meaning().to_owned());
        Some(CodeLine { name, meaning })
    });
    PromptParts {
        dialect,
        capabilities: granted.iter().map(part).collect(),
        withheld: withheld
            .map(|c| Withheld { capability: c.name.to_owned(), why: wiring::how_to_grant(c.name).to_owned() })
            .collect(),
        programs: programs.map(|program| program.line.clone()).collect(),
        more_programs: if dialect == Dialect::Native && listing.offers_all { 0 } else { listing.more },
        codes: codes.collect(),
        limits: Limits {
            memory_mib: u32::try_from(runtime.limits().memory >> 20).unwrap_or(u32::MAX),
            program_secs: u32::try_from(runtime.limits().time.as_secs()).unwrap_or(u32::MAX),
            observation_limit: settings.machine.observation_limit,
            max_steps: settings.machine.max_steps,
        },
        preamble: settings.preamble.clone(),
        volatile: Vec::new(),
    }
}
