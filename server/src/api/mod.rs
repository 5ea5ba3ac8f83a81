//! The routes of the API, one file per resource.

pub(crate) mod agents;
mod artifacts;
mod catalog;
mod changes;
mod chat;
mod files;
mod fixtures;
mod integrations;
mod memory;
mod meta;
mod programs;
mod resume;
mod runs;
mod save;
mod sessions;
pub(crate) mod start;
mod stream;
mod tokens;
mod vars;

use crate::openai;
use crate::route::Route;

/// Returns all routes.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    routes.extend(chat::routes());
    routes.extend(runs::routes());
    routes.extend(resume::routes());
    routes.extend(changes::routes());
    routes.extend(stream::routes());
    routes.extend(artifacts::routes());
    routes.extend(sessions::routes());
    routes.extend(files::routes());
    routes.extend(agents::routes());
    routes.extend(catalog::routes());
    routes.extend(save::routes());
    routes.extend(programs::routes());
    routes.extend(vars::routes());
    routes.extend(memory::routes());
    routes.extend(tokens::routes());
    routes.extend(integrations::routes());
    routes.extend(openai::routes());
    routes.extend(meta::routes());
    routes
}

/// The error response of routes with an id in their path.
pub(crate) const NOT_FOUND: (u16, &str) = (404, "There is no such resource.");
/// The error response of routes with a body or a query.
pub(crate) const INVALID: (u16, &str) = (422, "A field is unknown, missing or invalid.");
/// The error response of routes with a JSON body.
pub(crate) const NOT_JSON: (u16, &str) = (400, "The body is not JSON in UTF-8.");
/// The error response of routes that are restricted to administrators of the server's own tenant.
pub(crate) const NOT_OPERATOR: (u16, &str) = (403, "The token belongs to another tenant.");
/// The error response of routes that start runs, if the caller has reached a limit.
pub(crate) const BUSY: (u16, &str) = (429, "Too many requests, or messages of this session.");
/// The error response of routes that start runs, if the server is full or about to stop.
pub(crate) const FULL: (u16, &str) = (503, "The server is full or about to stop.");
