//! Conversion of catalog programs to functions that a model can call.

use wattle_catalog::{Arg, ArgumentSchema, Catalog, Entry, TypeHint};
use wattle_machine::{Offer, Param, ParamKind, ProgramFunction};
use wattle_rt::Grants;

use crate::listing::is_hosts;

/// Returns the catalog's programs as functions. Those in `listed` have a function of their own.
pub(crate) fn functions(
    catalog: &Catalog,
    listed: &[String],
    grants: &Grants,
) -> Vec<ProgramFunction> {
    catalog.iter().map(|entry| offered(entry, listed, grants)).collect()
}

/// Returns a program as a function, which is its own if the program is in `listed`. A program that
/// needs a missing grant, or that only the host calls, is withheld.
pub(crate) fn offered(entry: &Entry, listed: &[String], grants: &Grants) -> ProgramFunction {
    let is_granted = entry.meta().uses.iter().flatten().all(|capability| grants.allows(capability));
    let offer = if !is_granted || is_hosts(entry) {
        Offer::Withheld
    } else if listed.iter().any(|name| name == entry.name().as_str()) {
        Offer::Listed
    } else {
        Offer::Unlisted
    };
    function(entry, offer)
}

pub(crate) fn function(entry: &Entry, offer: Offer) -> ProgramFunction {
    let meta = entry.meta();
    ProgramFunction {
        program: entry.name().to_string(),
        description: meta.description.trim().to_owned(),
        params: meta.args.iter().map(|arg| param(arg, entry.schema())).collect(),
        result: meta.result.clone(),
        offer,
        exclusive: meta.exclusive,
        silent: meta.silent,
        whole: meta.whole,
        schema: entry.schema().map(|schema| schema.document().clone()),
    }
}

fn param(arg: &Arg, schema: Option<&ArgumentSchema>) -> Param {
    let kind = match arg.type_hint {
        _ if schema.is_some_and(|schema| schema.is_structured(&arg.name)) => ParamKind::Json,
        TypeHint::Int => ParamKind::Integer,
        TypeHint::Float => ParamKind::Number,
        TypeHint::Bool => ParamKind::Boolean,
        TypeHint::Json => ParamKind::Json,
        TypeHint::String | TypeHint::Path | TypeHint::Url => ParamKind::Text,
    };
    Param {
        name: arg.name.clone(),
        kind,
        format: arg.format.clone(),
        description: arg.description.trim().to_owned(),
        default: arg.default.clone(),
    }
}
