//! The slots for the active runs of a process, and the share of each tenant in them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wattle_store::Tenant;

use super::error::StartError;
use super::start::ServiceLimits;

/// The slots of a process. Each active root run occupies one. Cheap to clone.
///
/// If there is an [operator](ServiceLimits::operator), some slots are reserved for its runs, and a
/// single other tenant gets no more than its share, so that it leaves slots to all others.
#[derive(Clone)]
pub(super) struct Slots(Arc<Inner>);

struct Inner {
    limits: ServiceLimits,
    used: Mutex<Used>,
    /// A signal that a slot is free again.
    freed: Notify,
}

/// The numbers of slots in use.
#[derive(Default)]
struct Used {
    all: usize,
    /// The slots of each tenant that uses some, except the operator.
    tenants: HashMap<Tenant, usize>,
}

/// The slots that are free, by tenant.
pub(super) struct Free {
    /// Number of free slots.
    pub(super) slots: usize,
    /// The tenant for which all of them are reserved, if any.
    pub(super) only: Option<Tenant>,
    /// The tenants that use their whole share.
    pub(super) without: Vec<Tenant>,
}

/// The slot of a run. Dropping it frees the slot.
pub(super) struct RunSlot {
    slots: Slots,
    tenant: Tenant,
}

impl Slots {
    pub(super) fn new(limits: ServiceLimits) -> Slots {
        Slots(Arc::new(Inner { limits, used: Mutex::default(), freed: Notify::new() }))
    }

    /// Takes a slot for a run of the tenant.
    pub(super) fn take(&self, tenant: &Tenant) -> Result<RunSlot, StartError> {
        let limits = &self.0.limits;
        let mut used = self.lock();
        if used.all >= limits.runs {
            return Err(StartError::TooManyRuns(limits.runs));
        }
        if let Some(share) = limits.share_of(tenant) {
            if used.tenants.values().sum::<usize>() >= limits.shared() {
                return Err(StartError::TooManyRuns(limits.shared()));
            }
            let own = used.tenants.entry(tenant.clone()).or_default();
            if *own >= share {
                return Err(StartError::TenantBusy(share));
            }
            *own += 1;
        }
        used.all += 1;
        Ok(RunSlot { slots: self.clone(), tenant: tenant.clone() })
    }

    /// Waits for a slot for a run of the tenant.
    pub(super) async fn wait(&self, tenant: &Tenant) -> RunSlot {
        loop {
            let freed = self.0.freed.notified();
            tokio::pin!(freed);
            // A slot that is freed after the attempt also ends the wait.
            freed.as_mut().enable();
            if let Ok(slot) = self.take(tenant) {
                return slot;
            }
            freed.await;
        }
    }

    /// Returns the free slots.
    pub(super) fn free(&self) -> Free {
        let limits = &self.0.limits;
        let used = self.lock();
        let is_full = |(tenant, own): &(&Tenant, &usize)| {
            limits.share_of(tenant).is_some_and(|share| **own >= share)
        };
        let shared = used.tenants.values().sum::<usize>();
        Free {
            slots: limits.runs.saturating_sub(used.all),
            only: limits.operator.clone().filter(|_| shared >= limits.shared()),
            without: used
                .tenants
                .iter()
                .filter(is_full)
                .map(|(tenant, _)| tenant.clone())
                .collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServiceLimits {
    /// Returns the number of slots that are not reserved for the operator.
    fn shared(&self) -> usize {
        let reserved = if self.runs < 4 { 0 } else { (self.runs / 8).max(1) };
        self.runs - reserved
    }

    /// Returns the maximum number of slots for a tenant, or `None` if it may use all.
    fn share_of(&self, tenant: &Tenant) -> Option<usize> {
        let operator = self.operator.as_ref()?;
        let share = self.runs_per_tenant.unwrap_or((self.runs / 2).max(1));
        (tenant != operator).then_some(share)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut used = self.slots.lock();
        used.all -= 1;
        if let Some(own) = used.tenants.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                used.tenants.remove(&self.tenant);
            }
        }
        drop(used);
        self.slots.0.freed.notify_waiters();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).unwrap()
    }

    fn slots(runs: usize) -> Slots {
        let operator = Some(tenant("operator"));
        Slots::new(ServiceLimits { runs, operator, ..ServiceLimits::default() })
    }

    fn fill(slots: &Slots, name: &str) -> Vec<RunSlot> {
        std::iter::from_fn(|| slots.take(&tenant(name)).ok()).collect()
    }

    #[test]
    fn a_tenant_leaves_half_of_the_slots_and_all_tenants_leave_some_to_the_operator() {
        for (runs, share, shared) in [(1, 1, 1), (2, 1, 2), (4, 2, 3), (16, 8, 14), (64, 32, 56)] {
            let slots = slots(runs);
            let first = fill(&slots, "a");
            assert_eq!(first.len(), share, "{runs}");
            let others: Vec<_> = ["b", "c"].iter().flat_map(|name| fill(&slots, name)).collect();
            assert_eq!(first.len() + others.len(), shared, "{runs}");
            assert_eq!(fill(&slots, "operator").len(), runs - shared, "{runs}");
            drop(first);
            assert_eq!(fill(&slots, "operator").len(), runs - others.len(), "{runs}");
        }
        assert_eq!(fill(&slots(16), "operator").len(), 16);
        let unshared = ServiceLimits { runs: 16, ..ServiceLimits::default() };
        assert_eq!(fill(&Slots::new(unshared), "a").len(), 16);
    }

    #[test]
    fn the_free_slots_name_the_tenants_that_may_not_take_them() {
        let slots = slots(4);
        let _a = fill(&slots, "a");
        let free = slots.free();
        assert_eq!((free.slots, free.only, free.without), (2, None, vec![tenant("a")]));
        let _b = fill(&slots, "b");
        let free = slots.free();
        assert_eq!((free.slots, free.only), (1, Some(tenant("operator"))));
    }

    #[test]
    fn a_run_that_waits_for_a_slot_of_its_tenant_gets_it() {
        let slots = slots(4);
        let mut held = fill(&slots, "a");
        let name = tenant("a");
        let mut waiting = Box::pin(slots.wait(&name));
        assert!(waiting.as_mut().now_or_never().is_none());
        let other = slots.take(&tenant("b")).unwrap();
        drop(other);
        assert!(waiting.as_mut().now_or_never().is_none(), "the share is still in use");
        held.pop();
        assert!(waiting.now_or_never().is_some());
    }
}
