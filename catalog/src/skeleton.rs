//! Generates the source of a new program.

use crate::{Catalog, Name};

/// Returns the source of a new program that runs and contains examples. If a built-in program has
/// the same name, the front matter contains `replaces`.
///
/// ```
/// use wattle_catalog::{Entry, Origin, skeleton};
///
/// let text = skeleton(&"greet".parse()?);
/// let entry = Entry::parse(&text, Origin::BuiltIn("greet.wat"))?;
/// assert_eq!(entry.usage(), "greet(who: string = \"world\")");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn skeleton(name: &Name) -> String {
    let text = include_str!("skeleton.wat").replace("{name}", name.as_str());
    match Catalog::built_in().get(name.as_str()) {
        Some(_) => text.replacen(";;; tags", &format!(";;; replaces = \"{name}\"\n;;; tags"), 1),
        None => text,
    }
}
