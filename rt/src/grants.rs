//! Grants: the capabilities that a run may use, and their configuration.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::tape::Tape;
use crate::{Account, Guard};

/// The configuration of a granted capability, such as its backend, its root folder or its policy.
///
/// A type configures exactly one capability, so a configuration is looked up by its type.
pub trait Config: Any + Send + Sync {
    /// The name of the configured capability, such as `kv`.
    const CAPABILITY: &'static str;
}

/// The capabilities and resources that a run may use. Grants are built once for a session or an
/// agent and shared by its runs. Neither a program nor a model can extend them.
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
    /// Creates grants that allow nothing.
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

    /// Grants a capability with its configuration. A second configuration of the same type replaces
    /// the first.
    #[must_use]
    pub fn with<C: Config>(self, config: C) -> Self {
        let mut grants = self.allow(C::CAPABILITY);
        grants.configs.retain(|(id, _)| *id != TypeId::of::<C>());
        grants.configs.push((TypeId::of::<C>(), Arc::new(config)));
        grants
    }

    /// Sets the guard of every program that runs with these grants. It replaces the current guard.
    #[must_use]
    pub fn guarded(self, guard: Arc<dyn Guard>) -> Self {
        Grants { guard: Some(guard), ..self }
    }

    /// Sets the tape that records the results of host functions, or replays them. A tape belongs to
    /// one program and its nested programs.
    #[must_use]
    pub fn taped(self, tape: Arc<dyn Tape>) -> Self {
        Grants { tape: Some(tape), ..self }
    }

    /// Returns the tape, if there is one.
    #[must_use]
    pub fn tape(&self) -> Option<&Arc<dyn Tape>> {
        self.tape.as_ref()
    }

    /// Sets the account that every program with these grants is charged to. Without it, each
    /// top-level program has its own account.
    #[must_use]
    pub fn charged_to(self, account: Account) -> Self {
        Grants { account: Some(account), ..self }
    }

    /// Returns the account, if there is one.
    #[must_use]
    pub fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// Returns the guard, if there is one.
    #[must_use]
    pub fn guard(&self) -> Option<&Arc<dyn Guard>> {
        self.guard.as_ref()
    }

    /// Returns true if the capability is granted.
    #[must_use]
    pub fn allows(&self, capability: &str) -> bool {
        // The names are usually the same constant, and comparing addresses is faster.
        self.allowed.iter().any(|name| std::ptr::eq(*name, capability))
            || self.allowed.contains(&capability)
    }

    /// Returns the names of the granted capabilities, in the order in which they were granted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.allowed.iter().copied()
    }

    /// Returns the configuration of type `C`, if one was granted.
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
