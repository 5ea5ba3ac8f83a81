//! The parts of the system prompt: the granted functions, the catalog, the error codes and the
//! limits.

use wattle_capability::TRUSTED;
use wattle_capability::agent::AGENT;
use wattle_capability::skill::SKILL;
use wattle_capability::tool::TOOL;
use wattle_machine::{
    CapabilityPart, Dialect, FunctionLine, Limits, PromptParts, WithheldCapability,
};
use wattle_rt::{Capability, Code, Function, Grants, PromptDetail, Runtime};

use crate::listing::Listing;
use crate::refusal::why_withheld;
use crate::settings::Settings;

/// Collects the parts of the system prompt from the runtime, the settings and the grants.
pub(crate) fn parts(
    runtime: &Runtime,
    settings: &Settings,
    grants: &Grants,
    listing: &Listing,
    dialect: Dialect,
) -> PromptParts {
    let (granted, withheld): (Vec<&Capability>, Vec<&Capability>) =
        runtime.capabilities().iter().partition(|c| grants.allows(c.name));
    // If the capabilities of trusted runs are withheld, the prompt does not say so, because a plain
    // run cannot get them. The same applies to the capabilities for other agents, for the
    // application's tools and for skills, which only some runs have.
    let rare = [AGENT.name, TOOL.name, SKILL.name];
    let withheld =
        withheld.iter().filter(|c| !TRUSTED.contains(&c.name) && !rare.contains(&c.name));
    let part = |capability: &&Capability| {
        let (seldom, shown): (Vec<&Function>, Vec<&Function>) = capability
            .functions
            .iter()
            .filter(|function| function.prompt_detail != PromptDetail::Omitted)
            .partition(|function| function.prompt_detail == PromptDetail::Name);
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
            rare: seldom.iter().map(|function| function.name.to_owned()).collect(),
        }
    };
    PromptParts {
        dialect,
        capabilities: granted.iter().map(part).filter(CapabilityPart::is_shown).collect(),
        withheld: withheld
            .map(|c| WithheldCapability {
                capability: c.name.to_owned(),
                why: why_withheld(c.name).to_owned(),
            })
            .collect(),
        programs: listing.programs(grants, dialect),
        codes: Code::ALL.iter().filter_map(|code| code.name()).map(str::to_owned).collect(),
        limits: Limits {
            memory_mib: u32::try_from(runtime.limits().memory >> 20).unwrap_or(u32::MAX),
            program_secs: u32::try_from(runtime.limits().time.as_secs()).unwrap_or(u32::MAX),
            observation_limit: settings.machine.observation_limit,
            max_steps: settings.machine.max_steps,
        },
        preamble: settings.preamble.clone(),
        memory: settings.memory.clone(),
        skills: listing.skills(grants),
        guidance: settings.guidance.to_vec(),
        volatile: Vec::new(),
    }
}
