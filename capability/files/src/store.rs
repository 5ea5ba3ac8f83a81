//! The tree of a run's files, shared between its handles.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::overlay::Overlay;
use crate::tree::Tree;
use crate::write_through::WriteThrough;

/// The tree of a run's files. An operation that only an overlay supports matches on the variant, so
/// that its behaviour in a write-through run is explicit.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each run has one store")]
pub(crate) enum Store {
    Overlay(Overlay),
    WriteThrough(WriteThrough),
}

impl Store {
    pub(crate) fn tree(&self) -> &dyn Tree {
        match self {
            Store::Overlay(overlay) => overlay,
            Store::WriteThrough(write_through) => write_through,
        }
    }

    pub(crate) fn tree_mut(&mut self) -> &mut dyn Tree {
        match self {
            Store::Overlay(overlay) => overlay,
            Store::WriteThrough(write_through) => write_through,
        }
    }
}

/// A [`Store`] behind a lock. Each operation holds the lock until it is complete.
#[derive(Clone, Debug)]
pub(crate) struct SharedStore(Arc<Mutex<Store>>);

impl SharedStore {
    pub(crate) fn new(store: Store) -> SharedStore {
        SharedStore(Arc::new(Mutex::new(store)))
    }

    pub(crate) fn lock(&self) -> LockedStore<'_> {
        // No operation panics halfway through a change, so a poisoned lock still guards a
        // consistent store.
        LockedStore(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A locked [`Store`]. When it is dropped, the charge for an overlay's memory is adjusted to what the
/// overlay uses.
pub(crate) struct LockedStore<'a>(MutexGuard<'a, Store>);

impl Deref for LockedStore<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl DerefMut for LockedStore<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.0
    }
}

impl Drop for LockedStore<'_> {
    fn drop(&mut self) {
        if let Store::Overlay(overlay) = &mut *self.0 {
            overlay.settle();
        }
    }
}
