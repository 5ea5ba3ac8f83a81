//! The items that rules expect. An item is a string or a number.

use serde::Deserialize;

use super::clean::bare;
use crate::number::numbers;

/// An expected value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a string or a number")]
pub(super) enum Item {
    /// A number, in any notation.
    Number(f64),
    /// A string. It matches any text that is equal except for decoration such as quotes.
    Text(String),
}

impl Item {
    /// Returns true if `found` matches this item. A number may differ by at most `within` (plus a
    /// rounding tolerance) and may have a unit.
    pub(super) fn is(&self, found: &str, within: f64) -> bool {
        match self {
            Item::Text(text) => bare(found) == bare(text),
            Item::Number(number) => {
                let found = bare(found);
                // At most two words are allowed, so that a unit may follow: `12 km`.
                matches!(numbers(&found).as_slice(), [one] if is_near(*one, *number, within))
                    && found.split_whitespace().count() <= 2
            }
        }
    }
}

/// Returns true if two numbers differ by at most `within`, plus a tolerance for the rounding of
/// decimal fractions.
pub(super) fn is_near(found: f64, expected: f64, within: f64) -> bool {
    (found - expected).abs() <= within + expected.abs() * 1e-9
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Number(number) => write!(f, "{number}"),
            Item::Text(text) => f.write_str(text),
        }
    }
}

/// Joins items with commas, for a message.
pub(super) fn joined(items: &[Item]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A single item or several items.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string, a number, or an array of them")]
pub(super) enum Items {
    One(Item),
    Many(Vec<Item>),
}

impl Items {
    pub(super) fn list(&self) -> &[Item] {
        match self {
            Items::One(one) => std::slice::from_ref(one),
            Items::Many(many) => many,
        }
    }
}
