//! The store, which contains sessions with their key-value state, the state and the memory of
//! tenants, and the journal of runs. The store is either an SQLite file, which several processes on
//! one machine can share, or a schema of a PostgreSQL database, which several machines can share.
//! Large files can be objects outside the database; see [`BlobStore`].
//!
//! A [`Store`] represents the whole database. All functions that access a tenant's data are methods
//! of [`TenantStore`], which [`Store::tenant`] returns. Therefore they cannot be called without a
//! tenant.

mod address;
mod blob;
mod client;
mod clock;
mod copy;
mod crash;
mod db;
mod error;
mod files;
mod folder;
mod inspect;
pub mod journal;
mod keep;
mod known_keys;
mod lease;
pub mod ledger;
pub mod lines;
mod marker;
mod memory;
mod objects;
mod overlay;
mod private;
mod probe;
mod process;
mod replica;
mod rewind;
mod rows;
mod run_info;
mod runs;
mod schema;
mod scope;
mod seal;
mod secret;
mod selection;
mod session;
mod size;
mod state;
mod stats;
mod store;
mod tables;
mod tenant;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]
mod tests;
mod token;
mod tree;
mod usage;
mod wake;

pub use address::StoreAddress;
pub use blob::{BlobStore, S3Bucket};
pub use client::{Integration, SameConversation};
pub use copy::{CopiedTable, CopyPhase, CopyProgress, StoreCopy, copy_store};
pub use db::StoreTransaction;
pub use error::StoreError;
pub use files::{NextDelta, SessionDeltas, SessionFiles};
pub use folder::create_folder;
pub use inspect::{Finding, Inspection};
pub use journal::own_session;
pub use keep::{PruneError, Pruned, Retention};
pub use known_keys::MissingKey;
pub use memory::{LazyMemory, StoredMemory};
pub use overlay::SessionFilesError;
pub use private::{Privacy, privacy};
pub use replica::QueueState;
pub use replica::{FreeRun, QueueLook, RequestedCancel, TenantLoad};
pub use rewind::Rewind;
pub use scope::Scope;
pub use secret::{LazySecrets, StoredSecrets};
pub use session::{ExportedSession, History, SESSION_ID, SessionLine, StateValue, is_session_id};
pub use size::Stored;
pub use state::{LazyState, State};
pub use stats::{StoreStats, TableStats};
pub(crate) use store::Owner;
pub use store::{Store, TenantStore};
pub use tenant::{DEFAULT_TENANT, Tenant, TenantError};
pub use token::TokenLine;
pub use tree::TreeStatus;
pub use usage::StoreLimits;
pub use wake::{Topic, Wakes};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time in milliseconds since the Unix epoch, the format of timestamps.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
