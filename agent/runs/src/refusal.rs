//! The wording of the refusals that models and programs receive.

use wattle_capability::TRUSTED;
use wattle_catalog::Catalog;

/// Returns the refusal for an unknown program name, which suggests the most similar names in the
/// catalog.
pub(crate) fn unknown_program(catalog: &Catalog, name: &str) -> String {
    let nearest: Vec<String> =
        catalog.nearest(name).iter().map(|name| format!("`{name}`")).collect();
    let refusal = format!("there is no program `{name}` in the catalog");
    match nearest.as_slice() {
        [] => refusal,
        names => format!("{refusal}; the nearest: {}", names.join(", ")),
    }
}

/// Returns the refusal for a model's call to an unknown program.
pub(crate) fn unknown_call(catalog: &Catalog, name: &str) -> String {
    let refusal = unknown_program(catalog, name);
    if catalog.nearest(name).is_empty() {
        format!("{refusal}; write it as ToolCall::Wat, or use one that the prompt lists")
    } else {
        refusal
    }
}

/// Returns the reason why a capability is withheld, with the settings that grant it, if any.
pub(crate) fn why_withheld(capability: &str) -> &'static str {
    match capability {
        "ai" => "no model is configured: set `--base-url` and `--model`",
        "skill" => "there are no skills: add a folder of them with `--skills`",
        "tool" => "the application that started the run has no tools",
        _ => "it was not granted when the run was started",
    }
}

/// Returns the refusal for a program that lacks the `missing` capabilities. The wording differs for
/// capabilities of trusted runs.
pub fn denied(missing: &[&str]) -> String {
    let (trusted, others): (Vec<&str>, Vec<&str>) =
        missing.iter().partition(|name| TRUSTED.contains(name));
    let trusted = trusted.iter().map(|name| format!("{name} not permitted (no exec capability)"));
    let others =
        others.iter().map(|name| format!("`{name}` is not granted ({})", why_withheld(name)));
    let each: Vec<String> = trusted.chain(others).collect();
    let reasons = each.join("; ");
    if missing.iter().all(|name| TRUSTED.contains(name)) {
        reasons
    } else {
        format!("denied before it ran: {reasons}")
    }
}
