//! The web site of a demo. It serves a few pages on a loopback address until the process ends.

use std::net::SocketAddr;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::Html;
use tokio::net::TcpListener;
use wattle_agent::host::capability::egress::HostRule;

/// The pages, each with its path and its content.
const PAGES: &[(&str, &str)] = &[
    ("/", include_str!("../../demo/fetch/index.html")),
    ("/visit.html", include_str!("../../demo/fetch/visit.html")),
];

/// A running site.
pub(super) struct Site {
    address: SocketAddr,
    rule: HostRule,
}

impl Site {
    /// Serves the pages on a free port.
    pub(super) async fn start() -> std::io::Result<Site> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let rule = address
            .to_string()
            .parse()
            .map_err(|error| std::io::Error::other(format!("{error}")))?;
        // Connection errors are ignored.
        tokio::spawn(axum::serve(listener, Router::new().fallback(page)).into_future());
        Ok(Site { address, rule })
    }

    /// Returns the site's URL without a final `/`.
    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the host rule that allows access to this site, but to nothing else on this machine.
    pub(super) fn rule(&self) -> HostRule {
        self.rule.clone()
    }
}

async fn page(uri: Uri) -> (StatusCode, Html<&'static str>) {
    match PAGES.iter().find(|(path, _)| *path == uri.path()) {
        Some((_, page)) => (StatusCode::OK, Html(page)),
        None => (StatusCode::NOT_FOUND, Html("no such page\n")),
    }
}
