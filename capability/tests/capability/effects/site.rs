//! A slow site that counts its concurrent requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wattle_capability::PortFuture;
use wattle_capability::egress::{HeaderMap, Incoming, Outgoing, StatusCode};
use wattle_capability::http::{Backend, Response};
use wattle_rt::{Code, Failure};

/// A backend that waits for a fixed time and then responds with the last segment of the URL. It
/// responds to `404` with status 404, to `bytes` with invalid UTF-8, and to `broken` with a
/// failure.
pub(crate) struct Slow {
    pub(crate) wait: Duration,
    pub(crate) started: AtomicUsize,
    pub(crate) active: AtomicUsize,
    pub(crate) peak: AtomicUsize,
    pub(crate) ended: AtomicUsize,
}

impl Slow {
    pub(crate) fn new(wait: Duration) -> Arc<Slow> {
        let [started, active, peak, ended] = std::array::from_fn(|_| AtomicUsize::new(0));
        Arc::new(Slow { wait, started, active, peak, ended })
    }
}

/// A guard that marks a request as finished on drop, even if the request was cancelled.
struct Finish<'a>(&'a Slow);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backend for Slow {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        Box::pin(async move {
            self.started.fetch_add(1, Ordering::SeqCst);
            let now = self.active.fetch_add(1, Ordering::SeqCst) + 1;
            let _finish = Finish(self);
            self.peak.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(self.wait).await;
            self.ended.fetch_add(1, Ordering::SeqCst);
            let name = outgoing.request().url.rsplit('/').next().unwrap_or_default();
            let answer = match name {
                "broken" => Err(Failure::new(Code::EREMOTE, "the connection broke")),
                "404" => Ok(Response {
                    status: StatusCode::NOT_FOUND,
                    headers: HeaderMap::new(),
                    body: "no such page".into(),
                }),
                "bytes" => Ok(Response {
                    status: StatusCode::OK,
                    headers: HeaderMap::new(),
                    body: vec![0xff, b'a'].into(),
                }),
                name => Ok(Response {
                    status: StatusCode::OK,
                    headers: HeaderMap::new(),
                    body: name.to_owned().into(),
                }),
            };
            answer.map(|response| outgoing.answer(response))
        })
    }
}
