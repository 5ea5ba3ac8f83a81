//! The description of the language for models of other agents.

/// Returns a description of a tool that runs programs, which teaches the language in about a thousand
/// tokens. The caller adds the functions that call its tools.
#[must_use]
pub fn language() -> String {
    let text = wattle_mcp::LANGUAGE.trim();
    // The beginning and the end name the other tools and the resources of the gateway.
    let forms = text.split_once("\n\n").map_or(text, |(_, forms)| forms);
    let forms = forms.rsplit_once(" The resources `wattle://").map_or(forms, |(forms, _)| forms);
    format!(
        "Runs a program in a sandbox and returns what it prints. Write one program that calls \
         several tools, loops and computes, instead of calling tools one by one: only what it \
         prints comes back.\n\n{forms}"
    )
}
