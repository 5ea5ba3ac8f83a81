//! The slots for the active runs of a process, and the share of each tenant in them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wattle_rt::{Full, Owner, Shares, Usage};
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
    used: Mutex<Usage>,
    /// A signal that a slot is free again.
    freed: Notify,
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
    owner: Owner,
}

impl Slots {
    pub(super) fn new(limits: ServiceLimits) -> Slots {
        let used = Mutex::new(Usage::new(limits.shares()));
        Slots(Arc::new(Inner { limits, used, freed: Notify::new() }))
    }

    /// Takes a slot for a run of the tenant.
    pub(super) fn take(&self, tenant: &Tenant) -> Result<RunSlot, StartError> {
        let owner = self.0.limits.owner_of(tenant);
        self.lock().take(&owner).map_err(|full| match full {
            Full::Process(limit) => StartError::TooManyRuns(limit),
            Full::Group(limit) => StartError::TenantBusy(limit),
        })?;
        Ok(RunSlot { slots: self.clone(), owner })
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
        let used = self.lock();
        Free {
            slots: used.free(),
            only: self.0.limits.operator.clone().filter(|_| used.is_reserved()),
            // A group has the name of its tenant.
            without: used.full_groups().filter_map(|name| Tenant::new(name).ok()).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServiceLimits {
    /// Returns the owner of a tenant's work in the process. If there is an operator, each other
    /// tenant is a group of its own. Otherwise, all tenants use the process without shares.
    #[must_use]
    pub fn owner_of(&self, tenant: &Tenant) -> Owner {
        match &self.operator {
            Some(operator) if operator != tenant => Owner::Group(tenant.as_str().into()),
            _ => Owner::Operator,
        }
    }

    fn shares(&self) -> Shares {
        let shares = Shares::of(self.runs);
        self.runs_per_tenant.map_or(shares, |most| shares.with_group(most))
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.slots.lock().give_back(&self.owner);
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
