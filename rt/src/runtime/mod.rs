//! The runtime, which compiles and runs programs.

mod execute;
mod prepare;

use std::sync::Arc;

use wasmtime::{Engine, Linker};

use crate::cache::{Key, Programs};
use crate::engine::{Limits, engine, settings_hasher};
use crate::outcome::Bug;
use crate::pool::{Bounds, Pool};
use crate::run::LEVELS;
use crate::{Account, Callables, Capability, Owner, OwnerAccounts, Run, Shares, Signatures, Turns};

/// A compiler and executor of programs. A process has one runtime, which is cheap to clone and
/// shared by all runs. Each clone works for one [owner](Runtime::owned_by), whose share of the
/// process it uses.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
    owner: Owner,
    /// The account of the owner.
    account: Account,
    /// The host functions and programs that programs may call.
    signatures: Signatures,
    /// The hash of the programs and of the kept variables among them, if there are any.
    names: Option<Key>,
}

struct Inner {
    engine: Engine,
    linker: Linker<Box<Run>>,
    limits: Limits,
    capabilities: Vec<Capability>,
    programs: Programs,
    accounts: OwnerAccounts,
    pool: Pool,
    /// Slots for programs at each level of nesting. A program holds a slot at its own level, and
    /// its nested programs wait for slots at the next level.
    slots: [Turns; LEVELS],
    /// Hash of everything other than the module that determines the result of compilation: the
    /// versions of the capabilities and the compiler's settings.
    settings: Key,
}

/// The reason why running a program produced no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program needs capabilities that the run was not granted. The list contains their names.
    /// No instruction was executed.
    #[error("the program needs {}, not granted to this run", list(.0))]
    Denied(Vec<&'static str>),
    /// The run's guard denied the program. The string contains the reason. No instruction was
    /// executed.
    #[error("{0}")]
    Refused(String),
    /// A host function panicked. The program was ended, and its state is not used again.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The host itself failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A failure of the host itself. It ends the run and is never reported to a program.
#[derive(Debug, thiserror::Error)]
#[error("the engine failed: {0:#}")]
pub struct EngineError(wasmtime::Error);

impl From<wasmtime::Error> for EngineError {
    fn from(error: wasmtime::Error) -> Self {
        EngineError(error)
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Runtime {
    /// Creates the engine and links every capability once. The [`Grants`](crate::Grants) of a run
    /// determine which capabilities it may use.
    ///
    /// # Errors
    /// If the engine cannot be created (for lack of address space or threads), or if two
    /// capabilities declare the same function.
    pub fn new(capabilities: &[Capability], limits: Limits) -> Result<Runtime, EngineError> {
        let pool = Pool::new(Bounds::new(limits.compile));
        let engine = engine(&limits, pool.tick())?;
        let mut linker = Linker::new(&engine);
        let functions = || capabilities.iter().flat_map(|capability| capability.functions);
        for function in functions() {
            (function.link)(&mut linker)?;
        }
        let signatures = Signatures::new(functions().map(|function| function.signature));
        let inner = Inner {
            settings: settings(&engine, capabilities),
            engine,
            linker,
            capabilities: capabilities.to_vec(),
            programs: Programs::new(limits.cache),
            accounts: OwnerAccounts::new(limits.process_memory),
            pool,
            slots: std::array::from_fn(|level| {
                Turns::new(Shares::of(limits.slots(level) as usize))
            }),
            limits,
        };
        let account = inner.accounts.of(&Owner::Operator);
        let owner = Owner::Operator;
        Ok(Runtime { inner: Arc::new(inner), owner, account, signatures, names: None })
    }

    /// Returns the same runtime for the work of an owner. A new runtime works for the operator.
    ///
    /// A group of runs gets at most its [share](Shares) of the memory, of the slots for programs and
    /// of the compiler's queue, and waits in turn with the other owners.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Runtime {
        let account = self.inner.accounts.of(owner);
        Runtime { owner: owner.clone(), account, ..self.clone() }
    }

    /// Returns the owner for whom the runtime works.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Returns the same runtime for programs that may call the given programs by name.
    #[must_use]
    pub fn with_callables(&self, callables: &Callables) -> Runtime {
        Runtime {
            signatures: self.signatures.with_programs(Arc::clone(&callables.programs)),
            names: Some(callables.key),
            ..self.clone()
        }
    }

    /// Returns the same runtime for programs that may read the values that earlier programs kept
    /// under the given names.
    #[must_use]
    pub fn with_kept<'k>(&self, names: impl Iterator<Item = &'k str> + Clone) -> Runtime {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.names.unwrap_or_default());
        for name in names.clone() {
            hasher.update(name.as_bytes()).update(&[0]);
        }
        Runtime {
            signatures: self.signatures.with_kept(names),
            names: Some(hasher.finalize().into()),
            ..self.clone()
        }
    }

    /// Returns the capabilities that programs may name, granted or not.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.inner.capabilities
    }

    /// Returns true if the capability is known, and none of its functions reaches outside the program
    /// that calls it.
    #[must_use]
    pub fn is_pure(&self, capability: &str) -> bool {
        let mut known = self.inner.capabilities.iter().filter(|own| own.name == capability);
        let reaches = |own: &Capability| own.functions.iter().any(|f| f.signature.reaches_out());
        known.next().is_some_and(|own| !reaches(own))
    }

    /// Returns the signatures of the host functions that programs may name.
    #[must_use]
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Returns the limits of the engine and of each program.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns the accounts of all owners.
    #[must_use]
    pub fn accounts(&self) -> &OwnerAccounts {
        &self.inner.accounts
    }

    /// Returns the account of the runtime's owner. That of the operator is the account of the
    /// process.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Opens an account for a run, under the account of the runtime's owner.
    #[must_use]
    pub fn open_account(&self) -> Account {
        self.account.open_run(self.inner.limits.run.clone())
    }

    /// Opens an account for a child run of the run with the account `parent`.
    #[must_use]
    pub fn open_child_account(&self, parent: &Account) -> Account {
        parent.open_child(self.inner.limits.run.clone())
    }

    /// Returns the number of compiled programs in the cache.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.inner.programs.len()
    }
}

/// Hashes everything other than the module that determines the result of compilation.
fn settings(engine: &Engine, capabilities: &[Capability]) -> Key {
    let mut hasher = settings_hasher(engine);
    for capability in capabilities {
        hasher.update(capability.name.as_bytes()).update(&[0]);
        hasher.update(&capability.version.to_le_bytes());
    }
    hasher.finalize().into()
}
