//! The routes of the API, one file per resource.

mod agents;
mod artifacts;
mod catalog;
mod changes;
mod chat;
mod files;
mod fixtures;
mod integrations;
mod mcp;
mod memory;
mod meta;
mod programs;
mod resume;
mod runs;
mod save;
mod sessions;
mod stream;
mod tokens;
mod vars;

use crate::route::Route;

/// Returns the routes of all resources.
pub(crate) fn routes() -> Vec<Route> {
    [
        chat::routes(),
        runs::routes(),
        resume::routes(),
        changes::routes(),
        stream::routes(),
        artifacts::routes(),
        sessions::routes(),
        files::routes(),
        agents::routes(),
        catalog::routes(),
        save::routes(),
        programs::routes(),
        mcp::routes(),
        vars::routes(),
        memory::routes(),
        tokens::routes(),
        integrations::routes(),
        meta::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
