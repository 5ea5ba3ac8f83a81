//! Grants: which capabilities a run may use, and how each is configured for it.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::tape::Tape;
use crate::{Account, Guard};

/// The configuration that a capability is granted with: a backend, a root, a policy.
///
/// One type belongs to one capability, so a grant can be found by its type alone.
pub trait Config: Any + Send + Sync {
    /// The capability that it configures, such as `kv`.
    const CAPABILITY: &'static str;
}

/// What one run may use. Built once for a session or an agent and shared by its runs; nothing in it can be widened by a
/// program or a model.
///
/// ```
/// use wattle_rt::{Config, Grants};
/// struct Store;
/// impl Config for Store { const CAPABILITY: &'static str = "kv"; }
/// let grants = Grants::new().allow("str").with(Store);
/// assert!(grants.allows("str") && grants.allows("kv") && !grants.allows("http"));
/// ```
#[derive(Clone, Default)]
pub struct Grants {
    allowed: Vec<&'static str>,
    configs: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    guard: Option<Arc<dyn Guard>>,
    tape: Option<Arc<dyn Tape>>,
    account: Option<Account>,
}

impl Grants {
    /// Grants nothing.
    #[must_use]
    pub fn new() -> Self {
        Grants::default()
    }

    /// Grants a capability that needs no configuration.
    #[must_use]
    pub fn allow(mut self, capability: &'static str) -> Self {
        if !self.allows(capability) {
            self.allowed.push(capability);
        }
        self
    }

    /// Grants a capability with its configuration; a second one of the same type takes the place of the first.
    #[must_use]
    pub fn with<C: Config>(self, config: C) -> Self {
        let mut grants = self.allow(C::CAPABILITY);
        grants.configs.retain(|(id, _)| *id != TypeId::of::<C>());
        grants.configs.push((TypeId::of::<C>(), Arc::new(config)));
        grants
    }

    /// Holds every program that runs with these grants to a guard, in place of the one they have.
    #[must_use]
    pub fn guarded(self, guard: Arc<dyn Guard>) -> Self {
        Grants { guard: Some(guard), ..self }
    }

    /// Keeps what comes to the program from outside on that tape, or gives it from there. A tape is for one program, and those that it starts.
    #[must_use]
    pub fn taped(self, tape: Arc<dyn Tape>) -> Self {
        Grants { tape: Some(tape), ..self }
    }

    /// The tape, where there is one.
    #[must_use]
    pub fn tape(&self) -> Option<&Arc<dyn Tape>> {
        self.tape.as_ref()
    }

    /// Charges every program that runs with these grants to that account. Without one, each program that no other one starts has an
    /// account of its own.
    #[must_use]
    pub fn charged_to(self, account: Account) -> Self {
        Grants { account: Some(account), ..self }
    }

    /// The account, where there is one.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// The guard, where there is one.
    #[must_use]
    pub fn guard(&self) -> Option<&Arc<dyn Guard>> {
        self.guard.as_ref()
    }

    /// Whether the capability is granted.
    #[must_use]
    pub fn allows(&self, capability: &str) -> bool {
        self.allowed.contains(&capability)
    }

    /// The names of the granted capabilities, in the order they were granted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.allowed.iter().copied()
    }

    /// The configuration of that type, where one was granted.
    #[must_use]
    pub fn config<C: Config>(&self) -> Option<Arc<C>> {
        let (_, config) = self.configs.iter().find(|(id, _)| *id == TypeId::of::<C>())?;
        config.clone().downcast().ok()
    }
}

impl std::fmt::Debug for Grants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grants").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}
