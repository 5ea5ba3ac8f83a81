//! A workbook as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use wattle_rt::{Code, Failure};

/// The longest workbook, in bytes.
const LONGEST: usize = 1 << 20;

/// The document. Its tables are in the order of their names, whatever their order in the text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    #[serde(default)]
    pub(super) components: BTreeMap<String, Component>,
    #[serde(default)]
    pub(super) exports: BTreeMap<String, Export>,
}

/// A component: a catalog program or a text, with its arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Component {
    pub(super) program: Option<String>,
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<Arg>,
    #[serde(default)]
    pub(super) needs: Vec<String>,
}

/// An argument. Programs get all of them as text.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an argument is a text, a number, a boolean, or { from = \"COMPONENT\" }, with `result = N` for its Nth result, counted from 0"
)]
pub(super) enum Arg {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Of(Of),
}

/// What another component puts out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    pub(super) from: String,
    pub(super) result: Option<usize>,
}

/// What stands under a name in the end.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an export is a component's name, or { from = \"COMPONENT\", result = N } for its Nth result, counted from 0"
)]
pub(super) enum Export {
    Whole(String),
    Of(Of),
}

/// Reads the text.
///
/// # Errors
/// `EPARSE` where it is no TOML or has other keys than these, with the line.
pub(super) fn read(text: &str) -> Result<Book, Failure> {
    if text.len() > LONGEST {
        let words = format!("the workbook has {} bytes, more than {LONGEST}; keep its data in files", text.len());
        return Err(Failure::new(Code::EBOUND, words));
    }
    toml::from_str(text).map_err(|error| {
        let at = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
        let place = at.map(|line| format!(", line {line}")).unwrap_or_default();
        Failure::new(Code::EPARSE, format!("the workbook cannot be read{place}: {}", error.message()))
    })
}
