//! Extracts front matter from a file's content: the name, the [`Meta`] and the start of the body.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::front::block::{Block, block, notes};
use crate::front::keys::{RawArg, RawProgram, Scalar};
use crate::problem::Fault;
use crate::{Arg, Meta, Name, TypeHint};

pub(crate) mod block;
mod examples;
mod keys;

/// A fault with its line number, counted from 1.
pub(crate) type LineFault = (usize, Fault);

/// The validated front matter of a file, and the offset of the file's body.
pub(crate) struct Front {
    pub(crate) name: Name,
    pub(crate) meta: Meta,
    pub(crate) body: usize,
}

/// Reads the front matter of a file.
pub(crate) fn read(text: &str) -> Result<Front, LineFault> {
    let block = block(text)?;
    let raw = RawProgram::deserialize(
        toml::Deserializer::parse(&block.toml).map_err(|e| block.fault(&e))?,
    )
    .map_err(|e| block.fault(&e))?;
    let (name, meta) = check(raw, &block)?;
    let body = text.get(block.end..).unwrap_or_default();
    if body.lines().all(|line| line.trim_start().is_empty() || line.trim_start().starts_with(";;"))
    {
        return Err((block.first, Fault::NoBody));
    }
    Ok(Front { name, meta, body: block.end })
}

/// Returns true if a string contains front matter: the first line that is neither empty nor a plain
/// comment starts with `;;;`.
pub(crate) fn is_there(text: &str) -> bool {
    let mut lines = wattle_rt::without_bom(text).lines().map(str::trim_start);
    let is_comment =
        |line: &&str| line.is_empty() || (line.starts_with(";;") && !line.starts_with(";;;"));
    lines.find(|line| !is_comment(line)).is_some_and(|line| line.starts_with(";;;"))
}

/// Splits a file into the comments before its front matter, the front matter as TOML, and the body.
/// Returns `None` if there is no front matter.
pub(crate) fn split(text: &str) -> Option<(String, String, &str)> {
    let text = wattle_rt::without_bom(text);
    let block = block(text).ok()?;
    let (front, body) = text.split_at_checked(block.end)?;
    let (above, toml) = notes(front);
    Some((above, toml, body))
}

fn check(raw: RawProgram, block: &Block) -> Result<(Name, Meta), LineFault> {
    let name: Name = raw
        .name
        .get_ref()
        .parse()
        .map_err(|_| (block.line_of(&raw.name), Fault::Name(raw.name.get_ref().clone())))?;
    if raw.description.get_ref().trim().is_empty() {
        return Err((block.line_of(&raw.description), Fault::Empty("description")));
    }
    if let Some(uses) = &raw.uses {
        let is_wrong = |name: &&String| !is_word(name);
        if let Some(wrong) = uses.get_ref().iter().find(is_wrong) {
            return Err((block.line_of(uses), Fault::Uses(wrong.clone())));
        }
    }
    let is_invalid =
        |grant: &&Spanned<String>| grant.get_ref().contains(|c: char| c.is_control() || c == '"');
    if let Some(wrong) = raw.grants.iter().find(is_invalid) {
        let why = "it has a quote or a control character".to_owned();
        return Err((block.line_of(wrong), Fault::Grant { grant: wrong.get_ref().clone(), why }));
    }
    if let Some(time) = raw.timeout_ms.as_ref().filter(|time| *time.get_ref() == 0) {
        return Err((block.line_of(time), Fault::ZeroTimeout));
    }
    if let Some(replaced) =
        raw.replaces.as_ref().filter(|replaced| *replaced.get_ref() != name.as_str())
    {
        let fault =
            Fault::ReplacesOther { name: name.to_string(), replaced: replaced.get_ref().clone() };
        return Err((block.line_of(replaced), fault));
    }
    if let Some(result) = raw.result.as_ref().filter(|result| !is_format(result.get_ref())) {
        return Err((block.line_of(result), Fault::Format(result.get_ref().clone())));
    }
    let meta = Meta {
        description: raw.description.into_inner(),
        args: args(raw.args, block)?,
        returns: raw.returns,
        result: raw.result.map(Spanned::into_inner),
        uses: raw.uses.map(Spanned::into_inner),
        grants: raw.grants.into_iter().map(Spanned::into_inner).collect(),
        version: raw.version,
        replaces: raw.replaces.map(Spanned::into_inner),
        tags: raw.tags,
        exclusive: raw.exclusive,
        silent: raw.silent,
        whole: raw.whole,
        timeout: raw.timeout_ms.map(|time| Duration::from_millis(time.into_inner())),
        examples: Vec::new(),
    };
    examples::check(name, meta, raw.examples, block)
}

/// Returns true if the text is a valid name for an argument or a capability: a [`Name`] without
/// dots.
fn is_word(text: &str) -> bool {
    text.parse::<Name>().is_ok() && !text.contains('.')
}

fn args(raw: Vec<RawArg>, block: &Block) -> Result<Vec<Arg>, LineFault> {
    let mut args: Vec<Arg> = Vec::with_capacity(raw.len());
    let mut names = HashSet::new();
    for raw in raw {
        let line = block.line_of(&raw.name);
        let name = raw.name.into_inner();
        if !is_word(&name) {
            return Err((line, Fault::ArgName(name)));
        }
        if !names.insert(name.clone()) {
            return Err((line, Fault::DuplicateArg(name)));
        }
        if raw.description.get_ref().trim().is_empty() {
            return Err((block.line_of(&raw.description), Fault::Empty("description")));
        }
        if let Some(format) = raw.format.as_ref().filter(|format| !is_format(format.get_ref())) {
            return Err((block.line_of(format), Fault::Format(format.get_ref().clone())));
        }
        let default = match raw.default {
            None => None,
            Some(value) => {
                let line = block.line_of(&value);
                Some(
                    default(&name, raw.type_hint, value.into_inner())
                        .map_err(|fault| (line, fault))?,
                )
            }
        };
        if let (None, Some(optional)) = (&default, args.last().filter(|arg| arg.default.is_some()))
        {
            return Err((line, Fault::ArgOrder { arg: name, optional: optional.name.clone() }));
        }
        args.push(Arg {
            name,
            type_hint: raw.type_hint,
            format: raw.format.map(Spanned::into_inner),
            description: raw.description.into_inner(),
            default,
        });
    }
    Ok(args)
}

/// Maximum length of the description of an argument's format or of a result's shape, in characters.
pub(crate) const MAX_FORMAT: usize = 100;

/// Returns true if a string is a valid description of a format or a shape: not blank, at most
/// [`MAX_FORMAT`] characters long, and without control characters.
fn is_format(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= MAX_FORMAT
        && !text.chars().any(char::is_control)
}

fn default(arg: &str, hint: TypeHint, value: Scalar) -> Result<String, Fault> {
    let given = value.to_string();
    let fits = match (&value, hint) {
        (Scalar::Text(_), _)
        | (_, TypeHint::Int | TypeHint::Float | TypeHint::Bool | TypeHint::Json) => {
            hint.accept(&given)
        }
        (_, TypeHint::String | TypeHint::Path | TypeHint::Url) => None,
    };
    fits.map(Into::into).ok_or_else(|| Fault::Default {
        arg: arg.to_owned(),
        hint,
        given: crate::argument::excerpt(&given),
    })
}

/// A map of strings, sorted by key.
type Texts = BTreeMap<String, String>;
