//! Limits on the request rate of each token, and on the resources that tokens and tenants use at
//! the same time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wattle_agent::Tenant;
use wattle_agent::host::rt::Shares;

use crate::error::ApiError;
use crate::settings::Limits;

/// Maximum number of tokens whose request rate is tracked. If there are more, idle tokens are
/// dropped.
const MAX_TOKENS: usize = 10_000;

/// The hash of a token.
pub(crate) type TokenKey = [u8; 32];

/// The request rates of all tokens, and the resources in use.
pub(crate) struct Quotas {
    limiter: DefaultKeyedRateLimiter<TokenKey>,
    per_minute: NonZeroU32,
    limits: Limits,
    active: Arc<Active>,
    /// A signal that this server revoked a token.
    revoked: Notify,
}

/// A resource of which only a limited number may be in use at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A request that is being answered.
    Request,
    /// A run that is being started with the token.
    Run,
    /// A program that is executed outside a run.
    Program,
    /// A request that is answered with a stream of events.
    Stream,
}

/// The limits on the number of one resource in use.
#[derive(Clone, Copy)]
struct Share {
    /// Maximum for one token of the store.
    token: usize,
    /// Maximum for all tokens of one tenant together.
    tenant: usize,
    /// Maximum for all tokens of the store together.
    created: usize,
    /// Maximum for all tokens, including the server's own.
    all: usize,
}

/// A token, a tenant or a group of tokens whose resources in use are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Token(TokenKey),
    Tenant(Tenant),
    /// All tokens of the store together.
    Created,
    /// All tokens, including the server's own.
    All,
}

#[derive(Default)]
struct Active(Mutex<InUse>);

#[derive(Default)]
struct InUse {
    /// The number of resources in use, by kind and holder. Holders that use none are absent.
    counts: HashMap<(Kind, Holder), usize>,
    /// The tokens that hold slots, each with the number of its slots and the signal that ends their
    /// use.
    tokens: HashMap<TokenKey, (usize, CancellationToken)>,
}

/// A slot for one resource. Dropping it frees the slot.
pub(crate) struct Slot {
    active: Arc<Active>,
    counted: Vec<(Kind, Holder)>,
    token: Option<TokenKey>,
    revoked: CancellationToken,
}

impl Slot {
    /// Returns the signal that the token was revoked, which ends the use of the slot.
    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }
}

/// Returns the hash of a token.
pub(crate) fn key(token: &[u8]) -> TokenKey {
    *blake3::hash(token).as_bytes()
}

impl Quotas {
    pub(crate) fn new(limits: &Limits) -> Quotas {
        let per_minute = NonZeroU32::new(limits.requests_per_minute).unwrap_or(NonZeroU32::MIN);
        Quotas {
            limiter: RateLimiter::keyed(Quota::per_minute(per_minute)),
            per_minute,
            limits: *limits,
            active: Arc::default(),
            revoked: Notify::new(),
        }
    }

    /// Reports that a token was revoked.
    pub(crate) fn notice_revoked(&self) {
        self.revoked.notify_one();
    }

    /// Waits until a token is revoked by this server.
    pub(crate) async fn revoked(&self) {
        self.revoked.notified().await;
    }

    /// Returns the tokens that hold slots.
    pub(crate) fn tokens(&self) -> Vec<TokenKey> {
        self.active.lock().tokens.keys().copied().collect()
    }

    /// Ends the use of all slots of a token.
    pub(crate) fn end(&self, token: &TokenKey) {
        if let Some((_, revoked)) = self.active.lock().tokens.get(token) {
            revoked.cancel();
        }
    }

    /// Counts a request with this token. Fails if the token exceeds its rate limit.
    pub(crate) fn check(&self, key: TokenKey) -> Result<(), ApiError> {
        if self.limiter.len() > MAX_TOKENS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            ApiError::too_many_requests(self.per_minute.get(), wait)
        })
    }

    /// Acquires a slot. Fails if all slots of the token, of its tenant or of the server
    /// are in use.
    pub(crate) fn acquire(
        &self,
        kind: Kind,
        token: Option<TokenKey>,
        tenant: &Tenant,
    ) -> Result<Slot, ApiError> {
        self.acquire_beside(0, kind, token, tenant)
    }

    /// Acquires a slot as [`acquire`](Self::acquire) does, beside `others`, the resources of the token
    /// in use that have no slot.
    pub(crate) fn acquire_beside(
        &self,
        others: usize,
        kind: Kind,
        token: Option<TokenKey>,
        tenant: &Tenant,
    ) -> Result<Slot, ApiError> {
        let share = kind.share(&self.limits);
        let holders = match token {
            Some(token) => vec![
                (Holder::Token(token), share.token),
                (Holder::Tenant(tenant.clone()), share.tenant),
                (Holder::Created, share.created),
                (Holder::All, share.all),
            ],
            None => vec![(Holder::All, share.all)],
        };
        let mut active = self.active.lock();
        let mut counted = Vec::with_capacity(holders.len());
        for (holder, limit) in holders {
            let others = if matches!(holder, Holder::Token(_)) { others } else { 0 };
            let entry = (kind, holder);
            if active.counts.get(&entry).copied().unwrap_or_default() + others >= limit {
                return Err(kind.exhausted(&entry.1, limit));
            }
            counted.push(entry);
        }
        for entry in &counted {
            *active.counts.entry(entry.clone()).or_default() += 1;
        }
        let revoked = token.map_or_else(CancellationToken::new, |token| {
            let (slots, revoked) = active.tokens.entry(token).or_default();
            *slots += 1;
            revoked.clone()
        });
        drop(active);
        Ok(Slot { active: Arc::clone(&self.active), counted, token, revoked })
    }
}

impl Kind {
    fn share(self, limits: &Limits) -> Share {
        let part = |all: usize, parts: usize| (all / parts).max(1).min(all);
        match self {
            // Each request has a connection.
            Kind::Request => Share {
                token: part(limits.connections, 4),
                tenant: part(limits.connections, 2),
                created: limits.connections - limits.connections / 4,
                all: usize::MAX,
            },
            // The run service limits the runs of a tenant and of the server.
            Kind::Run => Share {
                token: limits.runs_per_token,
                tenant: usize::MAX,
                created: usize::MAX,
                all: usize::MAX,
            },
            Kind::Program => Share {
                token: part(limits.programs, 4),
                tenant: Shares::of(limits.programs).group(),
                created: Shares::of(limits.programs).groups(),
                all: limits.programs,
            },
            // The number of connections limits the streams of the server's own token.
            Kind::Stream => Share {
                token: part(limits.connections, 16),
                tenant: part(limits.connections, 4),
                created: limits.connections - limits.connections / 4,
                all: usize::MAX,
            },
        }
    }

    fn exhausted(self, holder: &Holder, limit: usize) -> ApiError {
        let (what, code) = match self {
            Kind::Request => ("requests", "too_many_requests"),
            Kind::Run => ("runs", "too_many_runs"),
            Kind::Program => ("programs", "too_many_programs"),
            Kind::Stream => ("streams", "too_many_streams"),
        };
        match holder {
            Holder::Token(_) => ApiError::too_many(code, what, "token", limit),
            Holder::Tenant(_) => ApiError::too_many(code, what, "tenant", limit),
            Holder::Created | Holder::All => {
                ApiError::overloaded(format!("the maximum number of {what} is active: {limit}"))
            }
        }
    }
}

impl Active {
    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut active = self.active.lock();
        for entry in &self.counted {
            if let Some(count) = active.counts.get_mut(entry) {
                *count -= 1;
                if *count == 0 {
                    active.counts.remove(entry);
                }
            }
        }
        if let Some(token) = &self.token
            && let Some((slots, _)) = active.tokens.get_mut(token)
        {
            *slots -= 1;
            if *slots == 0 {
                active.tokens.remove(token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_a_tenant_and_all_tenants_leave_slots_to_others() {
        let quotas = Quotas::new(&Limits::default());
        let take = |token: u8, tenant: &str| {
            let tenant = Tenant::new(tenant).unwrap();
            quotas.acquire(Kind::Program, (token > 0).then_some([token; 32]), &tenant)
        };
        let fails = |token: u8, tenant: &str, words: &str| {
            let error = format!("{:?}", take(token, tenant).map(drop).unwrap_err());
            assert!(error.contains(words), "{error}");
        };
        let mut held = Vec::new();
        for (token, tenant) in [(1, "a"), (2, "a"), (3, "b")] {
            held.extend((0..4).map(|_| take(token, tenant).unwrap()));
            fails(token, tenant, "4 programs of this token");
        }
        fails(4, "a", "8 programs of this tenant");
        held.extend((0..2).map(|_| take(5, "c").unwrap()));
        fails(5, "c", "overloaded");
        // The server's own token still has the rest.
        held.extend((0..2).map(|_| take(0, "a").unwrap()));
        fails(0, "a", "overloaded");
        // Slots of another kind are not affected.
        drop(quotas.acquire(Kind::Stream, Some([1; 32]), &Tenant::new("a").unwrap()).unwrap());
        drop(held);
        let active = quotas.active.lock();
        assert!(active.counts.is_empty() && active.tokens.is_empty());
    }

    #[test]
    fn the_servers_own_token_takes_nothing_of_the_share_of_other_tokens() {
        let quotas = Quotas::new(&Limits::default());
        let take = |kind: Kind, token: u8| {
            let tenant = Tenant::new(&format!("t{token}")).unwrap();
            quotas.acquire(kind, (token > 0).then_some([token; 32]), &tenant)
        };
        let share = Kind::Stream.share(&quotas.limits);
        let _own: Vec<Slot> = (0..share.created).map(|_| take(Kind::Stream, 0).unwrap()).collect();
        let tokens = (1..=u8::MAX).flat_map(|token| std::iter::repeat_n(token, share.token));
        let created: Vec<Slot> = tokens.map_while(|token| take(Kind::Stream, token).ok()).collect();
        assert_eq!(created.len(), share.created);
        // Both use the same slots for programs.
        let _own: Vec<Slot> = (0..2).map(|_| take(Kind::Program, 0).unwrap()).collect();
        let tokens = (1..=u8::MAX).flat_map(|token| std::iter::repeat_n(token, 2));
        let created: Vec<Slot> =
            tokens.map_while(|token| take(Kind::Program, token).ok()).collect();
        assert_eq!(created.len(), 14);
        assert!(take(Kind::Program, 0).is_err());
    }

    #[test]
    fn small_limits_leave_a_slot() {
        for programs in 1..4 {
            let quotas = Quotas::new(&Limits { programs, ..Limits::default() });
            let tenant = Tenant::new("a").unwrap();
            let first = quotas.acquire(Kind::Program, Some([1; 32]), &tenant);
            assert!(first.is_ok(), "{programs}");
            assert!(quotas.acquire(Kind::Program, Some([1; 32]), &tenant).is_err(), "{programs}");
        }
    }
}
