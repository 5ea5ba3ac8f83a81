//! The router: all routes, with the layers that check and measure requests.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::time::Instant;

use crate::error::ApiError;
use crate::nearest::nearest;
use crate::route::{Protection, Route};
use crate::state::Shared;
use crate::{api, auth, connection, gate, openai, openapi, page};

/// The methods and paths of all routes.
static ROUTES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| routes().iter().map(|route| (route.method, route.path)).collect());

static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document(&routes()));

/// Returns the server's OpenAPI 3.1 document as JSON.
#[must_use]
pub fn document() -> &'static str {
    &DOCUMENT
}

async fn document_of() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

/// Returns all routes.
fn routes() -> Vec<Route> {
    let document =
        Route::public("GET", "/openapi.json", get(document_of), "Returns this document.")
            .json::<serde_json::Value>(200, "The OpenAPI document.");
    [api::routes(), openai::routes(), vec![document]].into_iter().flatten().collect()
}

/// Returns the router for all routes, including the layers that check and measure requests.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let state = || Arc::clone(shared);
    let router = routes().into_iter().fold(Router::new(), |router, route| {
        let Route { path, scope, streams, handler, .. } = route;
        let handler = match scope {
            Some(scope) => {
                let protection = Protection { scope, streams };
                handler.route_layer(from_fn_with_state((state(), protection), auth::require))
            }
            None => handler,
        };
        router.route(path, handler)
    });
    router
        .merge(page::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(state(), connection::admit))
        // Outside of the other check, so that pages can read its errors, too.
        .layer(from_fn_with_state(Arc::clone(&shared.gate), gate::pass))
        .layer(from_fn_with_state(state(), measure))
        .with_state(state())
}

/// Records each request in the metrics, with its route, method, status and duration.
async fn measure(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let started = Instant::now();
    let response = next.run(request).await;
    let path = path.as_ref().map_or("unknown", MatchedPath::as_str);
    shared.metrics.request(path, &method, response.status(), started.elapsed());
    response
}

async fn not_found(request: Request) -> ApiError {
    let path = request.uri().path();
    let known: Vec<&str> = ROUTES.iter().map(|(_, path)| *path).collect();
    let nearest = nearest(path, &known).and_then(|nearest| {
        let mut of_path = ROUTES.iter().filter(|(_, path)| *path == nearest);
        let own = of_path.clone().find(|(method, _)| request.method() == method);
        own.or_else(|| of_path.next()).copied()
    });
    ApiError::no_route(path, nearest)
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::method_not_allowed(request.method().as_str(), request.uri().path())
}
