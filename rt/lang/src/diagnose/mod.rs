//! Diagnostics, including their wording, their fixes, and suggestions for unknown names.

pub(crate) mod diagnostic;
pub(crate) mod fix;
pub(crate) mod nearest;
pub(crate) mod truncate;
pub(crate) mod wording;
