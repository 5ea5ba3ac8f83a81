//! Conversion of catalog programs to functions that a model can call.

use wattle_catalog::{Arg, ArgumentSchema, Catalog, Entry, TypeHint};
use wattle_machine::{Offer, Param, ParamKind, ProgramFunction};
use wattle_rt::Grants;

use crate::listing::{Listing, is_hosts};

/// Returns the catalog's programs as functions. Only the programs that the listing offers are
/// described to the model; programs that need a missing grant, or that only the host calls, are
/// withheld.
pub(crate) fn functions(
    catalog: &Catalog,
    listing: &Listing,
    grants: &Grants,
) -> Vec<ProgramFunction> {
    let offer = |entry: &Entry| match entry
        .meta()
        .uses
        .iter()
        .flatten()
        .all(|capability| grants.allows(capability))
    {
        false => Offer::Withheld,
        true if is_hosts(entry) => Offer::Withheld,
        true if listing.offers(entry.name().as_str()) => Offer::Listed,
        true => Offer::Unlisted,
    };
    catalog.iter().map(|entry| function(entry, offer(entry))).collect()
}

/// Returns a program as a function. It is offered if its capabilities are granted.
pub(crate) fn offered(entry: &Entry, grants: &Grants) -> ProgramFunction {
    let is_granted = entry.meta().uses.iter().flatten().all(|capability| grants.allows(capability));
    function(entry, if is_granted { Offer::Listed } else { Offer::Withheld })
}

pub(crate) fn function(entry: &Entry, offer: Offer) -> ProgramFunction {
    let meta = entry.meta();
    ProgramFunction {
        program: entry.name().to_string(),
        description: meta.description.trim().to_owned(),
        params: meta.args.iter().map(|arg| param(arg, entry.schema())).collect(),
        offer,
        exclusive: meta.exclusive,
        silent: meta.silent,
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
        description: arg.description.trim().to_owned(),
        default: arg.default.clone(),
    }
}
