//! Grants: the capabilities that a run may use, and their state.

use std::any::{Any, TypeId};
use std::sync::Arc;

use crate::kept::Kept;
use crate::tape::Tape;
use crate::{Account, Guard};

/// The state of granted capabilities, such as their backend or their root folder. Functions look it
/// up by its type.
///
/// A capability is granted by its state, so a run that performs calls has none without its state.
pub trait Config: Any + Send + Sync {
    /// The names of the capabilities that work on this state, such as `kv`, and that it grants.
    /// Empty for state that functions can do without.
    const CAPABILITIES: &'static [&'static str];
}

impl Config for Kept {
    const CAPABILITIES: &'static [&'static str] = &[];
}

/// The capabilities and resources that a run may use. Grants are built once for a session or an
/// agent and shared by its runs. Neither a program nor a model can extend them.
///
/// ```
/// use wattle_rt::{Config, Grants};
/// struct Store;
/// impl Config for Store { const CAPABILITIES: &'static [&'static str] = &["kv"]; }
/// let grants = Grants::new().with(Store);
/// assert!(grants.allows("kv") && !grants.allows("http"));
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

    /// Creates grants that name capabilities without their state. They are for prompts and for
    /// replays, in which a tape returns the results of all calls and nothing is performed.
    #[must_use]
    pub fn without_state(capabilities: impl IntoIterator<Item = &'static str>) -> Self {
        Grants { allowed: capabilities.into_iter().collect(), ..Grants::default() }
    }

    /// Adds state, and grants the capabilities that work on it. Replaces earlier state of the same
    /// type.
    #[must_use]
    pub fn with<C: Config>(mut self, config: C) -> Self {
        for capability in C::CAPABILITIES {
            if !self.allows(capability) {
                self.allowed.push(capability);
            }
        }
        self.configs.retain(|(id, _)| *id != TypeId::of::<C>());
        self.configs.push((TypeId::of::<C>(), Arc::new(config)));
        self
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

    /// Returns the state of type `C`, if there is one.
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
