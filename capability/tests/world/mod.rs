//! A world for programs: every capability, on backends that a test controls.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test cannot go on without its world")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::ai::{Ai, Inference, Options};
use wattle_capability::egress::HeaderMap;
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::help::{Guide, Help};
use wattle_capability::http::{self, Http};
use wattle_capability::kv::{InMemory, Kv};
use wattle_rt::{Code, Failure, Grants, Limits, Outcome, Runtime};

pub(crate) struct World {
    pub(crate) runtime: Runtime,
    pub(crate) files: Arc<Files>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> World {
        let runtime = Runtime::new(wattle_capability::ALL, limits).unwrap();
        World { runtime, files: Arc::new(Files::overlay(None, 64 << 20)) }
    }

    pub(crate) fn grants(&self) -> Arc<Grants> {
        let pure = wattle_capability::pure_grants();
        Arc::new(
            pure.with(Kv(Arc::new(InMemory::default())))
                .with(Http(Arc::new(Web)))
                .with(Fs(Arc::clone(&self.files)))
                .with(Help(Arc::new(Tables)))
                .with(Ai::new(Arc::new(Echo), 3)),
        )
    }

    pub(crate) async fn run(&self, text: &str, args: &[&str]) -> Result<Outcome, String> {
        let program = self.runtime.prepare(text).await.map_err(|d| d.to_string())?;
        let args = args.iter().map(ToString::to_string).collect();
        self.runtime.run_within(&program, &self.grants(), args, Duration::from_secs(2)).await.map_err(|e| e.to_string())
    }
}

/// Knows the tables of functions.
struct Tables;

impl Guide for Tables {
    fn about(&self, topic: &str) -> Option<String> {
        wattle_capability::manual::about(wattle_capability::ALL, topic)
    }
}

/// Answers 200 with the path, but what `/status/N` asks for with that status, and nothing at `/hang`.
struct Web;

impl http::Backend for Web {
    fn send(
        &self,
        request: http::Request,
    ) -> Pin<Box<dyn Future<Output = Result<http::Response, Failure>> + Send + '_>> {
        Box::pin(async move {
            let path = request.url.splitn(4, '/').nth(3).unwrap_or_default().to_owned();
            if path == "hang" {
                std::future::pending::<()>().await;
            }
            if path == "refused" {
                return Err(Failure::new(Code::EACCESS, "refused: that host is not allowed"));
            }
            let status = path.strip_prefix("status/").map_or(200, |s| s.parse().unwrap());
            let body = format!("{} {path} {}", request.method, String::from_utf8_lossy(&request.body));
            Ok(http::Response { status, headers: HeaderMap::new(), body: body.into_bytes() })
        })
    }
}

struct Echo;

impl Inference for Echo {
    fn assist<'a>(
        &'a self,
        text: &'a str,
        instruction: &'a str,
        _: &'a Options,
    ) -> Pin<Box<dyn Future<Output = Result<String, Failure>> + Send + 'a>> {
        Box::pin(async move { Ok(format!("{instruction} {text}")) })
    }
}
