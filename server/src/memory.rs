//! The memory of requests and responses, charged to accounts.
//!
//! Each tenant has one account for the bodies of its requests and for the files and other stored
//! data that these requests load. A request holds its memory until its handler has returned, and a
//! response holds its body until the client has received it. Bodies of at most [`FREE`] bytes are
//! not charged, so that small requests succeed even if the accounts are full.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;
use wattle_agent::Tenant;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::fs;
use wattle_agent::host::rt::{Account, AccountLimits, MemoryCharge, Owner, OwnerAccounts};

use crate::error::ApiError;
use crate::quota::Slot;

/// Maximum size of a body that is not charged, in bytes.
pub(crate) const FREE: usize = 64 << 10;

/// Maximum size of each part of a body that is passed to the HTTP layer, in bytes. The HTTP layer
/// copies each part and requests the next part only when it has few bytes left.
pub(crate) const PART: usize = 64 << 10;

/// Maximum number of tenants whose accounts are kept. If there are more, unused accounts are
/// dropped.
const MAX_TENANTS: usize = 10_000;

/// The accounts for the memory of requests.
///
/// The requests of a tenant are charged to the account of the tenant's group, like its runs, and may
/// hold a quarter of the process's memory. Requests with the server's own token are charged to the
/// account of the operator, to which all groups leave a reserve, and may hold half.
pub(crate) struct Accounts {
    own: Account,
    owners: OwnerAccounts,
    tenants: Mutex<HashMap<Tenant, Account>>,
}

/// The memory that a request holds. Clones share it, and dropping the last clone releases it.
#[derive(Clone)]
pub(crate) struct RequestMemory {
    account: Account,
    /// Maximum memory of the account, in bytes.
    limit: usize,
    held: Arc<Mutex<Vec<MemoryCharge>>>,
}

/// A response body that holds resources until it has been sent.
struct HeldBody {
    body: Body,
    /// The rest of the body's current frame.
    rest: Bytes,
    /// Maximum size of the frames, in bytes.
    part: usize,
    _memory: Option<MemoryCharge>,
    /// The slot of a stream, and the signal that its token was revoked, which ends the stream.
    stream: Option<(Arc<Slot>, Pin<Box<WaitForCancellationFutureOwned>>)>,
}

impl Accounts {
    pub(crate) fn new(owners: &OwnerAccounts) -> Accounts {
        let own = owners.of(&Owner::Operator).open_run(limit(owners.memory() / 2));
        Accounts { own, owners: owners.clone(), tenants: Mutex::default() }
    }

    /// Returns an empty [`RequestMemory`] for a request with the server's own token.
    pub(crate) fn own(&self) -> RequestMemory {
        RequestMemory::new(self.own.clone(), self.owners.memory() / 2)
    }

    /// Returns an empty [`RequestMemory`] for a request with a token of a tenant. Even a tenant of
    /// the operator is a group here, so that its tokens leave memory to the server's own token.
    pub(crate) fn of_tenant(&self, tenant: &Tenant) -> RequestMemory {
        let most = self.owners.memory() / 4;
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MAX_TENANTS {
            tenants.retain(|_, account| account.held() > 0);
        }
        let group = || self.owners.of(&Owner::Group(tenant.as_str().into()));
        let open = || group().open_run(limit(most));
        let account = tenants.entry(tenant.clone()).or_insert_with(open).clone();
        RequestMemory::new(account, most)
    }
}

/// Returns the limits of an account that only holds memory.
fn limit(memory: usize) -> AccountLimits {
    AccountLimits { memory, cpu: Duration::MAX, received: u64::MAX }
}

impl RequestMemory {
    fn new(account: Account, limit: usize) -> RequestMemory {
        RequestMemory { account, limit, held: Arc::default() }
    }

    /// Holds memory until the request is over. Does not charge [`FREE`] or fewer bytes.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), ApiError> {
        let charge = self.charge(bytes)?;
        self.keep(charge, bytes)
    }

    /// Holds memory until the returned charge is dropped. Does not charge [`FREE`] or fewer bytes.
    pub(crate) fn charge(&self, bytes: usize) -> Result<MemoryCharge, ApiError> {
        match bytes {
            ..=FREE => Ok(self.account.nothing()),
            _ if bytes > self.limit => Err(ApiError::needs_too_much(bytes, self.limit)),
            _ => self.account.hold(bytes).map_err(|_| ApiError::no_memory()),
        }
    }

    /// Holds the memory of a session's files until they are dropped, also if it grows. Does not
    /// charge the first [`FREE`] bytes.
    pub(crate) fn charge_files(&self, files: &Files) -> Result<(), ApiError> {
        fs::charge(files, &self.account, FREE).map_err(|_| ApiError::no_memory())
    }

    /// Shrinks or grows a charge to this number of bytes and holds it until the request is over.
    pub(crate) fn keep(&self, mut charge: MemoryCharge, bytes: usize) -> Result<(), ApiError> {
        if bytes <= FREE {
            return Ok(());
        }
        charge.shrink_to(bytes);
        let missing = bytes.saturating_sub(charge.used());
        charge.grow(missing).map_err(|_| ApiError::no_memory())?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(charge);
        Ok(())
    }

    /// Holds memory for a response until the returned charge is dropped. Because the handler has
    /// returned, the memory of the request is reused for the response, and the remainder is
    /// released.
    fn charge_response(&self, bytes: usize) -> Result<MemoryCharge, ApiError> {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        match held.into_iter().max_by_key(MemoryCharge::used) {
            Some(mut charge) if bytes <= self.limit => {
                charge.shrink_to(bytes);
                let missing = bytes.saturating_sub(charge.used());
                charge.grow(missing).map_err(|_| ApiError::no_memory())?;
                Ok(charge)
            }
            _ => self.charge(bytes),
        }
    }

    /// Attaches resources to a response, which holds them until it has been sent. A body of known
    /// size holds memory. Any other body holds `stream`, the slot of the stream. If there is not
    /// enough memory, returns an error response instead. Unless `is_repeatable` is true, the error
    /// says that the request was carried out and must not be repeated.
    pub(crate) fn respond(
        &self,
        response: Response,
        stream: Option<Arc<Slot>>,
        is_repeatable: bool,
    ) -> Response {
        let size = response.body().size_hint().exact();
        let (memory, stream, part) = match size.map(usize::try_from) {
            Some(Ok(..=FREE)) => return response,
            Some(size) => match self.charge_response(size.unwrap_or(usize::MAX)) {
                Ok(charge) => (Some(charge), None, PART),
                Err(error) if is_repeatable => return error.into_response(),
                Err(_) => return ApiError::response_dropped().into_response(),
            },
            None if stream.is_none() => return response,
            None => (None, stream, usize::MAX),
        };
        response.map(|body| {
            let stream = stream.map(|slot| {
                let revoked = slot.revoked().clone().cancelled_owned();
                (slot, Box::pin(revoked))
            });
            Body::new(HeldBody { body, rest: Bytes::new(), part, _memory: memory, stream })
        })
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some((_, revoked)) = &mut self.stream
            && revoked.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let part = self.part.min(self.rest.len());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn of_process(process: usize) -> Accounts {
        Accounts::new(&OwnerAccounts::new(process))
    }

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).unwrap()
    }

    #[test]
    fn the_requests_of_a_tenant_share_an_account() {
        let accounts = of_process(16 << 20);
        let (one, other) = (accounts.of_tenant(&tenant("a")), accounts.of_tenant(&tenant("a")));
        one.hold(3 << 20).unwrap();
        other.hold(2 << 20).unwrap_err();
        other.hold(FREE).unwrap();
        accounts.of_tenant(&tenant("b")).hold(3 << 20).unwrap();
        drop(one);
        other.hold(2 << 20).unwrap();
        let charge = other.charge(2 << 20).unwrap();
        other.keep(charge, 1 << 20).unwrap();
        other.hold(2 << 20).unwrap_err();
        other.hold(1 << 20).unwrap();
    }

    #[test]
    fn all_tenants_together_leave_memory_to_the_servers_own_token() {
        let accounts = of_process(16 << 20);
        let names = ["a", "b", "c", "d"].map(tenant);
        let all = names.each_ref().map(|name| accounts.of_tenant(name));
        for memory in all.iter().take(3) {
            memory.hold(4 << 20).unwrap();
        }
        let error = format!("{:?}", all[3].hold(4 << 20).unwrap_err());
        assert!(error.contains("overloaded"), "{error}");
        let error = format!("{:?}", all[3].hold(5 << 20).unwrap_err());
        assert!(error.contains("413"), "{error}");
        all[3].hold(2 << 20).unwrap();
        accounts.own().hold(2 << 20).unwrap();
    }

    #[test]
    fn the_requests_and_the_runs_of_a_tenant_share_its_memory() {
        let owners = OwnerAccounts::new(16 << 20);
        let accounts = Accounts::new(&owners);
        let runs = owners.of(&Owner::Group("a".into())).open_run(AccountLimits::default());
        let _held = runs.hold(6 << 20).unwrap();
        accounts.of_tenant(&tenant("a")).hold(3 << 20).unwrap_err();
        accounts.of_tenant(&tenant("b")).hold(3 << 20).unwrap();
    }

    #[tokio::test]
    async fn a_large_body_holds_its_memory_until_it_has_been_sent() {
        let accounts = of_process(16 << 20);
        let memory = accounts.of_tenant(&tenant("a"));
        let text: Vec<u8> = (0..3 * PART + 5).map(|at| (at % 251) as u8).collect();
        let response = memory.respond(Body::from(text.clone()).into_response(), None, true);
        assert!(memory.account.held() >= text.len());
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
        let mut found = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PART);
            found.extend_from_slice(&data);
            assert_eq!(body.size_hint().exact(), Some((text.len() - found.len()) as u64));
        }
        assert_eq!(found, text);
        drop(body);
        assert_eq!(memory.account.held(), 0);
        let small = memory.respond(Body::from("small").into_response(), None, true);
        assert_eq!(memory.account.held(), 0);
        drop(small);
        // The memory of the request is used for its response.
        memory.hold(3 << 20).unwrap();
        memory.hold(1 << 20).unwrap();
        let response = memory.respond(Body::from(vec![0; 2 << 20]).into_response(), None, false);
        assert_eq!((response.status().as_u16(), memory.account.held()), (200, 2 << 20));
        drop(response);
        let _all = memory.charge(4 << 20).unwrap();
        let refused = memory.respond(Body::from(text.clone()).into_response(), None, true);
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        // The request had an effect, so clients must not repeat it.
        let dropped = memory.respond(Body::from(text).into_response(), None, false);
        assert_eq!(dropped.status(), 500);
        assert!(!dropped.headers().contains_key("retry-after"));
        assert_eq!(dropped.headers()["x-should-retry"], "false");
        let body = dropped.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("\"response_dropped\""), "{body:?}");
    }
}
