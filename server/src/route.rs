//! Routes, each with its handler, its scope and its description. The router, the token check, the
//! metrics and the OpenAPI document are derived from them.

use std::sync::Arc;

use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use wattle_agent::host::Scope;

use crate::state::Shared;

/// A route of the API.
pub(crate) struct Route {
    /// The method, in capitals.
    pub(crate) method: &'static str,
    /// The path, with parameters in braces. `{*name}` matches the rest of a path.
    pub(crate) path: &'static str,
    /// The required scope, or `None` if the route requires no token.
    pub(crate) scope: Option<Scope>,
    /// A one-sentence description.
    pub(crate) summary: &'static str,
    /// If true, the route can respond with a stream of events.
    pub(crate) streams: bool,
    /// The schema of the query.
    pub(crate) query: Option<SchemaOf>,
    /// The body of the request.
    pub(crate) body: Option<Content>,
    /// The responses, except errors that every route can return.
    pub(crate) answers: Vec<Answer>,
    pub(crate) handler: MethodRouter<Arc<Shared>>,
}

/// The checks of a route that requires a token.
#[derive(Clone, Copy)]
pub(crate) struct Protection {
    /// The required scope.
    pub(crate) scope: Scope,
    /// If true, each request takes a slot for a stream.
    pub(crate) streams: bool,
}

/// A function that returns a type's schema.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The content of a request or response body.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// A JSON document.
    Json(SchemaOf),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// A stream of server-sent events with this schema.
    Events(SchemaOf),
}

/// A documented response of a route.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) content: Option<Content>,
}

/// Returns the schema of a type.
pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of a value that has one of two types.
fn either<T: JsonSchema, U: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (one, other) = (generator.subschema_for::<T>(), generator.subschema_for::<U>());
    schemars::json_schema!({"anyOf": [one, other]})
}

impl Route {
    /// Creates a route that requires a token with this scope.
    pub(crate) fn new(
        method: &'static str,
        path: &'static str,
        scope: Scope,
        handler: MethodRouter<Arc<Shared>>,
        summary: &'static str,
    ) -> Route {
        Route { scope: Some(scope), ..Route::public(method, path, handler, summary) }
    }

    /// Creates a route that requires no token.
    pub(crate) fn public(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Arc<Shared>>,
        summary: &'static str,
    ) -> Route {
        Route {
            method,
            path,
            scope: None,
            streams: false,
            summary,
            query: None,
            body: None,
            answers: Vec::new(),
            handler,
        }
    }

    /// Sets the type of the query.
    pub(crate) fn query<T: JsonSchema>(self) -> Route {
        Route { query: Some(schema::<T>), ..self }
    }

    /// Sets the type of the JSON request body.
    pub(crate) fn body<T: JsonSchema>(self) -> Route {
        Route { body: Some(Content::Json(schema::<T>)), ..self }
    }

    /// Declares a request body of arbitrary bytes.
    pub(crate) fn bytes(self) -> Route {
        Route { body: Some(Content::Bytes("application/octet-stream")), ..self }
    }

    /// Adds a response with a JSON body.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, description: &'static str) -> Route {
        self.with(status, description, Some(Content::Json(schema::<T>)))
    }

    /// Adds a response with an event stream. The query selects one of two event types.
    pub(crate) fn events<T: JsonSchema, U: JsonSchema>(self, description: &'static str) -> Route {
        self.streams().with(200, description, Some(Content::Events(either::<T, U>)))
    }

    /// Declares that the route can respond with a stream of events.
    pub(crate) fn streams(self) -> Route {
        Route { streams: true, ..self }
    }

    /// Adds a response with a body of this media type.
    pub(crate) fn media(self, media: &'static str, description: &'static str) -> Route {
        self.with(200, description, Some(Content::Bytes(media)))
    }

    /// Adds a response without a body.
    pub(crate) fn empty(self, status: u16, description: &'static str) -> Route {
        self.with(status, description, None)
    }

    /// Adds error responses, each with its status and description.
    pub(crate) fn errors(self, errors: &[(u16, &'static str)]) -> Route {
        errors.iter().fold(self, |route, (status, description)| {
            let content = Some(Content::Json(schema::<crate::error::ErrorBody>));
            route.with(*status, description, content)
        })
    }

    fn with(mut self, status: u16, description: &'static str, content: Option<Content>) -> Route {
        self.answers.push(Answer { status, description, content });
        self
    }
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
