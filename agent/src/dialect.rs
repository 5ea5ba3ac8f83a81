//! Which dialect a run speaks, and the catalog as functions.

use std::fmt;
use std::str::FromStr;

use wattle_catalog::{Arg, Catalog, Entry, TypeHint};
use wattle_machine::{Dialect, Offer, Param, ParamKind, ProgramFunction};
use wattle_rt::Grants;

use crate::model::Model;
use crate::prompt::Listing;

/// Says which dialect runs speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialectSetting {
    /// Calls in the text.
    Text,
    /// Calls of functions. A model that takes none cannot be had.
    Native,
    /// Calls of functions where the model is known to take them, and of the text where it turns out that it does not.
    #[default]
    Auto,
}

impl DialectSetting {
    /// The settings that there are, with their names.
    pub const ALL: [(DialectSetting, &'static str); 3] =
        [(DialectSetting::Text, "text"), (DialectSetting::Native, "native"), (DialectSetting::Auto, "auto")];

    /// What a run with that model begins with.
    pub(crate) fn choose(self, model: &dyn Model) -> Dialect {
        match self {
            DialectSetting::Text => Dialect::Text,
            DialectSetting::Native => Dialect::Native,
            DialectSetting::Auto if model.takes_functions() => Dialect::Native,
            DialectSetting::Auto => Dialect::Text,
        }
    }
}

impl fmt::Display for DialectSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = DialectSetting::ALL.iter().find(|(setting, _)| setting == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for DialectSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        let found = DialectSetting::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted));
        found.map(|(setting, _)| *setting).ok_or_else(|| format!("expected `text`, `native` or `auto`, found {text:?}"))
    }
}

/// The programs of the catalog as functions; those that the listing offers are told of, and none that lacks a grant.
pub(crate) fn functions(catalog: &Catalog, listing: &Listing, grants: &Grants) -> Vec<ProgramFunction> {
    let offer = |entry: &Entry| match entry.meta().uses.iter().flatten().all(|capability| grants.allows(capability)) {
        false => Offer::Withheld,
        true if listing.offers(entry.name().as_str()) => Offer::Listed,
        true => Offer::Unlisted,
    };
    catalog.iter().map(|entry| function(entry, offer(entry))).collect()
}

fn function(entry: &Entry, offer: Offer) -> ProgramFunction {
    let meta = entry.meta();
    ProgramFunction {
        program: entry.name().to_string(),
        description: meta.description.trim().to_owned(),
        params: meta.args.iter().map(param).collect(),
        offer,
        exclusive: meta.exclusive,
        silent: meta.silent,
    }
}

fn param(arg: &Arg) -> Param {
    let kind = match arg.type_hint {
        TypeHint::Int => ParamKind::Integer,
        TypeHint::Float => ParamKind::Number,
        TypeHint::Bool => ParamKind::Boolean,
        TypeHint::Json => ParamKind::Json,
        TypeHint::String | TypeHint::Path | TypeHint::Url => ParamKind::Text,
    };
    Param { name: arg.name.clone(), kind, description: arg.description.trim().to_owned(), default: arg.default.clone() }
}
