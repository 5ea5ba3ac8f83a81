//! A new program to begin with.

use crate::Name;

/// The text of a program of that name that works and has an example: what an author begins with.
///
/// ```
/// use wattle_catalog::{Entry, Origin, skeleton};
///
/// let text = skeleton(&"greet".parse()?);
/// assert_eq!(Entry::parse(&text, Origin::BuiltIn("greet.wat"))?.usage(), "greet(who: string = \"world\")");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn skeleton(name: &Name) -> String {
    include_str!("skeleton.wat").replace("{name}", name.as_str())
}
