//! What the system prompt is made from: the functions that are granted, the catalog, the codes, the bounds.

use wattle_catalog::Catalog;
use wattle_machine::{ArgLine, CodeLine, FunctionLine, Limits, ProgramLine, PromptParts, Withheld};
use wattle_rt::{Capability, Code, Function, Grants, Runtime};

use crate::host::Settings;
use crate::wiring;

/// Gathers the parts from what is really there.
pub(crate) fn parts(runtime: &Runtime, catalog: &Catalog, settings: &Settings, grants: &Grants) -> PromptParts {
    let (granted, withheld): (Vec<&Capability>, Vec<&Capability>) =
        runtime.capabilities().iter().partition(|c| grants.allows(c.name));
    let functions = |capability: &&Capability| {
        let heading = format!("{} — {}", capability.name, capability.about);
        capability.functions.iter().map(move |f: &Function| FunctionLine {
            capability: heading.clone(),
            signature: f.signature.to_string(),
            about: f.about.to_owned(),
        })
    };
    let codes = Code::ALL.iter().filter_map(|code| {
        let (name, meaning) = (code.name()?.to_owned(), code.meaning().to_owned());
        Some(CodeLine { name, number: code.number(), meaning })
    });
    let programs = catalog.iter().map(|entry| ProgramLine {
        name: entry.name().to_string(),
        args: entry
            .meta()
            .args
            .iter()
            .map(|arg| ArgLine {
                name: arg.name.clone(),
                type_hint: arg.type_hint.to_string(),
                optional: arg.default.is_some(),
            })
            .collect(),
        description: entry.meta().description.clone(),
    });
    PromptParts {
        functions: granted.iter().flat_map(functions).collect(),
        withheld: withheld
            .iter()
            .map(|c| Withheld { capability: c.name.to_owned(), why: wiring::how_to_grant(c.name).to_owned() })
            .collect(),
        programs: programs.collect(),
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
