//! Diagnostics: their wording, their fixes, and the names that are nearest to an unknown one.

pub(crate) mod diagnostic;
pub(crate) mod fix;
pub(crate) mod nearest;
pub(crate) mod truncate;
pub(crate) mod wording;
