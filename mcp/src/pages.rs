//! What a client can learn about programs: pages to read, and the check of a program.

use serde_json::json;
use wattle_agent::Host;
use wattle_agent::host::touched;

use crate::CallEnd;

/// The language page.
const LANGUAGE: &str = include_str!("../../docs/language.md");

/// Maximum number of findings about a program.
const MAX_FINDINGS: usize = 8;

/// Returns the text of a page: `language`, or `functions`, which lists the host functions and the
/// catalog programs with their signatures.
#[must_use]
pub fn page(name: &str, host: &Host) -> Option<String> {
    match name {
        "language" => Some(LANGUAGE.to_owned()),
        "functions" => {
            let capabilities = host.runtime().capabilities().iter();
            let functions = capabilities
                .flat_map(|capability| capability.functions)
                .map(|function| format!("{} — {}", function.signature.usage(), function.about));
            let catalog = host.catalog();
            let programs = catalog
                .iter()
                .map(|entry| format!("{} — {}", entry.usage(), entry.meta().description));
            Some(functions.chain(programs).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// Checks a program without running it. The result is the errors with hints, or what the program
/// reaches, as JSON.
pub async fn check(program: &str, host: &Host) -> CallEnd {
    match host.prepare(program).await {
        Ok(prepared) => {
            let text = format!("the program is valid; it reaches: {}", json!(touched(&prepared)));
            CallEnd { text, success: true }
        }
        Err(first) => {
            let catalog = host.catalog();
            let runtime = host.runtime().with_callables(catalog.callables());
            let found = runtime.check(program, MAX_FINDINGS).await;
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            CallEnd::failed(if found.is_empty() { first.to_string() } else { found.join("\n") })
        }
    }
}
