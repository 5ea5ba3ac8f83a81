//! The fingerprint of a prompt, so that attempts with different prompts are not mixed.

use std::sync::LazyLock;

use regex::Regex;
use wattle_agent::catalog::Fixtures;
use wattle_agent::machine::Dialect;
use wattle_agent::model::FunctionTool;
use wattle_agent::{Host, Scene, Settings};

use crate::attempt::Approach;
use crate::baseline;
use crate::suite::fingerprint;
use crate::trial::grants;

static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d{4}-\d{2}-\d{2}").ok());

/// Returns a hash of all that a model is given before a task: the system prompt and the functions
/// that it may call. Dates do not count, so that an evaluation can be resumed on another day.
pub(crate) async fn fingerprint_of(
    host: &Host,
    settings: &Settings,
    approach: Approach,
) -> Result<String, String> {
    let scene = Scene::new(&Fixtures::default()).await?;
    let grants = grants(host, &scene, false);
    let listing = host.listing(None, "");
    let (prompt, functions) = match approach {
        Approach::Programs => {
            (host.prompt(settings, &grants, &listing, Dialect::Text), String::new())
        }
        Approach::Native => (
            host.prompt(settings, &grants, &listing, Dialect::Native),
            text(&host.functions(&listing, &grants))?,
        ),
        Approach::Tools => {
            let (system, schemas) = baseline::instructions(host, &grants);
            (system.to_owned(), text(&schemas)?)
        }
    };
    let prompt = match DATE.as_ref() {
        Some(date) => date.replace_all(&prompt, "DATE").into_owned(),
        None => prompt,
    };
    Ok(fingerprint(&[&prompt, &functions]))
}

fn text(functions: &[FunctionTool]) -> Result<String, String> {
    serde_json::to_string(functions).map_err(|why| why.to_string())
}
