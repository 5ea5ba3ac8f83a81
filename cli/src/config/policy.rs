//! The policy. Unlike other settings, it combines the rules of all layers.

use wattle_agent::host::capability::policy::{Policy, Rule, Verdict};

use super::{File, Layer};

/// Merges the rules of all layers. If several layers contain the same rule, the verdict in the
/// highest of these layers applies. The `ask` and `deny` rules of a project file only narrow what
/// the other layers allow, so they never replace a stricter rule of the user. The privileges of
/// programs are ranked against all rules but those.
pub(super) fn of_layers(
    flags: &[Layer],
    environment: &Layer,
    project: &File,
    user: &File,
) -> Policy {
    let narrowing =
        Policy::new(Vec::new(), listed(&project.layer.ask), listed(&project.layer.deny));
    let allowed = Layer { allow: project.layer.allow.clone(), ..Layer::default() };
    let mut rules: Vec<(Rule, Verdict)> = Vec::new();
    for layer in [&user.layer, &allowed, environment].into_iter().chain(flags.iter().rev()) {
        let of = |list: &Option<Vec<Rule>>, verdict| {
            listed(list).into_iter().map(move |rule| (rule, verdict))
        };
        let own = of(&layer.allow, Verdict::Allow)
            .chain(of(&layer.ask, Verdict::Ask))
            .chain(of(&layer.deny, Verdict::Deny))
            .collect::<Vec<_>>();
        rules.retain(|(rule, _)| !own.iter().any(|(higher, _)| higher == rule));
        rules.extend(own);
    }
    let with = |wanted| {
        rules
            .iter()
            .filter(move |(_, verdict)| *verdict == wanted)
            .map(|(rule, _)| rule.clone())
            .collect()
    };
    let layers = flags.iter().chain([environment, &user.layer]);
    let privileges = layers.filter_map(|layer| layer.programs.clone()).next();
    Policy::new(with(Verdict::Allow), with(Verdict::Ask), with(Verdict::Deny))
        .giving(privileges.unwrap_or_default())
        .and(narrowing)
}

fn listed(list: &Option<Vec<Rule>>) -> Vec<Rule> {
    list.clone().unwrap_or_default()
}
