//! The web page at `/`: static files compiled into the binary.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use include_dir::{Dir, include_dir};

use crate::error::ApiError;
use crate::path::Path;
use crate::state::Shared;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/page");

/// The content security policy. The page may only communicate with its own server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Returns the routes of the page. They require no token, because the page itself asks the user for
/// one.
pub(crate) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(async || file("index.html")))
        .route("/page/{*path}", get(async |Path(path): Path<String>| file(&path)))
}

fn file(path: &str) -> Response {
    let Some(found) = FILES.get_file(path) else {
        return ApiError::not_found("file", path).into_response();
    };
    let media = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    };
    let mut response = (StatusCode::OK, Body::from(found.contents())).into_response();
    for (name, value) in [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A new binary may contain changed files.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
