//! The rules as Landlock takes them.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope, make_bitflags, path_beneath_rules,
};

use super::{Reach, Rule, Walls};

/// The newest version of Landlock whose rights are used. A kernel with an older one enforces what it has.
const NEWEST: ABI = ABI::V6;

/// Restricts this thread, and all that it starts, to the rules: what they do not name cannot be opened, changed or executed. Unless the
/// command `listens`, no TCP port can be bound. Connections go where the egress guard lets them: Landlock knows ports, and no hosts.
pub(super) fn enforce(rules: &[Rule], listens: bool) -> Result<Walls, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    if !listens {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    let mut created = ruleset.create()?;
    for rule in rules {
        // What is not there cannot be opened, and needs no rule.
        created = created.add_rules(path_beneath_rules([&rule.path], rights(rule.reach)))?;
    }
    Ok(match created.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Walls::Whole,
        RulesetStatus::PartiallyEnforced => Walls::Partial,
        RulesetStatus::NotEnforced => Walls::Missing,
    })
}

fn rights(reach: Reach) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    match reach {
        Reach::Read => read,
        Reach::Run => read | AccessFs::Execute,
        Reach::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}),
        Reach::Write => {
            read | make_bitflags!(AccessFs::{
                WriteFile | Truncate | MakeReg | MakeDir | MakeSym | RemoveFile | RemoveDir | Refer
            })
        }
    }
}
