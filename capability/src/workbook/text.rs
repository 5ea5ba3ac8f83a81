//! Parses workbooks, which are either TOML or Org documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wattle_rt::{Code, Failure};

use super::org;

/// Maximum length of a workbook, in bytes.
const MAX_LENGTH: usize = 1 << 20;

/// A parsed workbook. Its components and exports are sorted by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    #[serde(default)]
    pub(super) components: BTreeMap<String, Component>,
    #[serde(default)]
    pub(super) exports: BTreeMap<String, Export>,
}

/// A component: a catalog program or a program's source, with arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Component {
    pub(super) program: Option<String>,
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<Arg>,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    /// The line number of the component's headline in an Org document, counted from 1.
    #[serde(skip)]
    pub(super) line: Option<usize>,
    /// The prose below the component's headline.
    #[serde(skip)]
    pub(super) about: String,
}

/// An argument of a component. Programs receive every argument as a string.
#[derive(Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "an argument is a string, a number, a boolean, or { from = \"COMPONENT\" }, with \
                 `result = N` for its Nth result, counted from 0"
)]
pub(super) enum Arg {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Of(Of),
}

/// A reference to another component's output.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    pub(super) from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<usize>,
}

/// An export: the whole output of a component, or one of its results.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an export is a component's name, or { from = \"COMPONENT\", result = N } for its \
                 Nth result, counted from 0"
)]
pub(super) enum Export {
    Whole(String),
    Of(Of),
}

/// Parses a workbook.
///
/// # Errors
/// `EPARSE` with the line number if the text is neither TOML nor Org, or contains unknown keys;
/// `EBOUND` if it is too large.
pub(super) fn read(text: &str) -> Result<Book, Failure> {
    if text.len() > MAX_LENGTH {
        let message = format!(
            "the workbook has {} bytes, more than {MAX_LENGTH}; keep its data in files",
            text.len()
        );
        return Err(Failure::new(Code::EBOUND, message));
    }
    let text = wattle_rt::without_bom(text);
    if org::is_org(text) {
        return org::read(text);
    }
    toml::from_str(text).map_err(|error| {
        let at = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map(|before| before.matches('\n').count() + 1);
        let place = at.map(|line| format!(", line {line}")).unwrap_or_default();
        Failure::new(Code::EPARSE, format!("invalid workbook{place}: {}", error.message()))
    })
}
