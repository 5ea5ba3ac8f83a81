//! What a program needs to host agents itself: the loop, the run service, the store, the policy,
//! and the crates below.
//!
//! [`run`] drives the loop of `wattle_machine` to completion. It sends requests to the model, runs
//! the requested programs on the shared [`Host`](crate::Host) with the grants of the [`RunParts`],
//! and reports each event to the [`Sink`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wattle_agent::host::{RunParts, RunRequest, capability, catalog, rt, run};
//! use wattle_agent::model::Cassette;
//! use wattle_agent::{Host, Resources, Store, Tenant};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::new(
//!     rt::Limits::default(),
//!     catalog::Catalog::built_in(),
//!     capability::egress::Egress::new(Default::default()),
//! )?;
//! let model = Cassette::parse(
//!     "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
//!      {\"reply\":\"ToolCall::Response(\\\"four\\\")\"}\n",
//! )?;
//! let files = Arc::new(capability::files::Files::overlay(None, 1 << 20));
//! let store = Store::in_memory(Duration::from_secs(3600))?.tenant(&Tenant::default());
//! let resources = Resources::new(&host, files);
//! let resources = Resources { state: Arc::new(store.state("a session")), ..resources };
//! let parts = RunParts::new(host, Arc::new(model), resources.grants());
//! let request = RunRequest::new("two and two?");
//! let report = run(parts, &request, &|_: &_| {}).await;
//! assert_eq!(report.ending.text(), "four");
//! # Ok(()) }
//! ```

pub use crate::authority::{Touched, touched};
pub use crate::examples::{Difference, ExampleFault, check_example};
pub use crate::issues::IssueFile;
pub use crate::scene::ExampleWorld;
pub use crate::tool_program::{ToolProgram, result_shape};
pub use crate::wiring::Trusted;
pub use wattle_machine::{Artifact, RecallContract};
pub use wattle_model::{DialectSetting, UsageMeter, moderation};
pub use wattle_runs::trace::{STEPS_FILE, Step};
pub use wattle_runs::{
    AgentPrograms, CatalogDiff, ChildEnd, ChildError, ChildRequest, ChildRuns, Compacted,
    DelegateNames, HostError, KEPT_LIMITS, Listing, ModelInference, NO_ENGINE, Perform, Programs,
    Report, RunHooks, RunParts, RunTree, Settle, Sink, Timeout, check_front_matter, compact,
    denied, otel, perform, run, service, trace,
};
pub use wattle_store::journal::RunRequest;
pub use wattle_store::{
    BlobStore, CopiedTable, CopyPhase, CopyProgress, DEFAULT_TENANT, ExportedSession, Finding,
    Inspection, Integration, LazyMemory, LazySecrets, LazyState, MissingKey, NextDelta, Privacy,
    PruneError, Pruned, QueueState, Retention, Rewind, S3Bucket, SESSION_ID, SameConversation,
    Scope, SessionDeltas, SessionFiles, SessionFilesError, SessionLine, State, StateValue,
    StoreAddress, StoreCopy, StoreError, StoreLimits, StoreStats, StoreTransaction, Stored,
    StoredMemory, StoredSecrets, TableStats, TenantError, TenantStore, TokenLine, copy_store,
    create_folder, is_session_id, ledger, now_ms, own_session, privacy,
};

pub use {
    wattle_capability as capability, wattle_catalog as catalog, wattle_machine as machine,
    wattle_rt as rt, wattle_shell as shell,
};

/// The journal of runs: its records, and the functions that run, resume, replay and fork runs with
/// it.
pub mod journal {
    pub use wattle_runs::journal::*;
    pub use wattle_runs::{
        ParkedRun, ReplayReport, RunOutcome, artifacts, conversation, end, replay, resume,
        run_journaled as run,
    };
}
