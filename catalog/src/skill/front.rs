//! The front matter of `SKILL.md`: YAML between two lines `---`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::MAX_SKILL_DESCRIPTION;
use crate::front::LineFault;
use crate::limits::MAX_SKILL_NAME;
use crate::problem::Fault;

/// Maximum length of the text about what a skill needs, in characters.
const MAX_COMPATIBILITY: usize = 500;

/// The line before the front matter, and the line after it.
const FENCE: &str = "---";

/// The validated front matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: Vec<String>,
    /// The keys that the specification does not define.
    pub(crate) other_keys: Vec<String>,
}

/// Returns true if a text can be the name of a skill: lowercase letters, digits and single hyphens
/// between them, at most 64.
///
/// ```
/// use wattle_catalog::is_skill_name;
/// assert!(is_skill_name("pdf-forms"));
/// assert!(!is_skill_name("PDF") && !is_skill_name("pdf--forms") && !is_skill_name("../pdf"));
/// ```
#[must_use]
pub fn is_skill_name(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    text.len() <= MAX_SKILL_NAME && text.split('-').all(is_word)
}

/// Returns the text of a `SKILL.md` with this front matter and these instructions.
#[must_use]
pub fn skill_text(name: &str, description: &str, instructions: &str) -> String {
    let mut text = format!("{FENCE}\nname: {name}\n");
    // A JSON string is a YAML string, whatever it contains.
    _ = writeln!(text, "description: {}", Json::from(description));
    format!("{text}{FENCE}\n\n{}\n", instructions.trim())
}

/// Splits a `SKILL.md` into its front matter and the instructions.
pub(crate) fn read(text: &str) -> Result<(Front, String), LineFault> {
    let text = wattle_rt::without_bom(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let first = lines.next().filter(|line| is_fence(line));
    let first = first.ok_or((1, Fault::SkillFrontMatter))?;
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            let yaml = text.get(first.len()..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok((front(yaml)?, body.trim().to_owned()));
        }
        end += line.len();
    }
    Err((1, Fault::SkillUnclosed))
}

/// The limits on the YAML. It needs no aliases, so it has none.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 16,
            max_nodes: 1_000,
            max_aliases: 0,
        },
        with_snippet: false,
        strict_booleans: true,
        legacy_octal_numbers: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
    }
}

fn front(yaml: &str) -> Result<Front, LineFault> {
    let read: Result<BTreeMap<String, Json>, _> =
        serde_saphyr::from_str_with_options(yaml, yaml_options());
    let mut keys = read.map_err(|error| {
        let line = error.location().map_or(0, |at| usize::try_from(at.line()).unwrap_or(0));
        // The first line of the file is the fence.
        (line + 1, Fault::SkillYaml(one_line(&error.to_string())))
    })?;
    let line = |key: &str| {
        let starts = |line: &str| line.trim_start_matches(['"', '\'']).starts_with(key);
        2 + yaml.lines().position(starts).unwrap_or(0)
    };
    let mut text = |key: &'static str, most: usize| match keys.remove(key) {
        None => Ok(None),
        Some(Json::String(text)) => {
            let text = text.trim().to_owned();
            let length = text.chars().count();
            if (1..=most).contains(&length) {
                Ok(Some(text))
            } else {
                Err((line(key), Fault::SkillText { key, most, length: Some(length) }))
            }
        }
        Some(_) => Err((line(key), Fault::SkillText { key, most, length: None })),
    };
    let missing = |key: &'static str| (1, Fault::SkillMissing(key));
    let name = text("name", usize::MAX)?.ok_or_else(|| missing("name"))?;
    if !is_skill_name(&name) {
        return Err((line("name"), Fault::SkillName(name)));
    }
    let description = text("description", MAX_SKILL_DESCRIPTION)?;
    let description = description.ok_or_else(|| missing("description"))?;
    let license = text("license", usize::MAX)?;
    let compatibility = text("compatibility", MAX_COMPATIBILITY)?;
    let metadata = match keys.remove("metadata") {
        None | Some(Json::Null) => BTreeMap::new(),
        Some(Json::Object(entries)) => {
            entries.into_iter().map(|(key, value)| (key, as_text(value))).collect()
        }
        Some(_) => return Err((line("metadata"), Fault::SkillMetadata)),
    };
    let allowed_tools = match keys.remove("allowed-tools") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::String(tools)) => tools
            .split_whitespace()
            .map(|tool| tool.trim_end_matches(',').to_owned())
            .filter(|tool| !tool.is_empty())
            .collect(),
        Some(Json::Array(tools)) => tools.into_iter().map(as_text).collect(),
        Some(_) => return Err((line("allowed-tools"), Fault::SkillTools)),
    };
    let other_keys = keys.into_keys().collect();
    Ok(Front { name, description, license, compatibility, metadata, allowed_tools, other_keys })
}

/// Returns a string itself, and any other value as JSON.
fn as_text(value: Json) -> String {
    match value {
        Json::String(text) => text,
        value => value.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
