//! The routes of the API, one file per resource.

pub(crate) mod agents;
pub(crate) mod artifacts;
pub(crate) mod catalog;
pub(crate) mod changes;
pub(crate) mod chat;
pub(crate) mod files;
mod fixtures;
pub(crate) mod integrations;
pub(crate) mod memory;
pub(crate) mod meta;
pub(crate) mod programs;
pub(crate) mod resume;
pub(crate) mod runs;
pub(crate) mod save;
pub(crate) mod sessions;
pub(crate) mod stream;
pub(crate) mod tokens;
pub(crate) mod vars;
