//! Agents: models that answer each step with a program, and the runtime that runs the program.
//!
//! [`run`] drives the loop of `wattle_machine` to completion. It sends requests to the [`model`],
//! runs the requested programs on the shared [`Host`] with the grants of the [`RunParts`], and reports
//! each event to the [`Sink`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wattle_agent::{
//!     Access, Host, RunParts, RunRequest, Store, Tenant, capability, catalog, model::Cassette, rt,
//! };
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
//! let access = Access { state: Arc::new(store.state("a session")), ..Access::new(&host, files) };
//! let parts = RunParts::new(host, Arc::new(model), access.grants());
//! let request = RunRequest::new("two and two?");
//! let report = wattle_agent::run(parts, &request, &|_: &_| {}).await;
//! assert_eq!(report.ending.text(), "four");
//! # Ok(()) }
//! ```

mod authority;
mod embed;
mod examples;
mod issues;
pub mod prelude;
mod scene;
mod wiring;

pub use authority::{Touched, touched};
pub use embed::{
    Agent, AgentBuilder, CallReport, CallResult, Execute, Handler, Middleware, NextCall, NextTrip,
    ReportStatus, RunEvent, RunEventKind, RunFailure, RunReport, RunState, RunStream, Runner,
    RunnerStats, StepCall, StepError, StepOptions, StepReply, StreamItem, Subscription, Tool,
    ToolContext, ToolError, Trip, TripRequest,
};
pub use examples::{Difference, ExampleFault, check_example};
pub use issues::IssueFile;
pub use scene::Scene;
pub use wattle_machine::{Artifact, RecallContract};
pub use wattle_model::{DialectSetting, IntoModel, Meter, moderation, output};
pub use wattle_runs::trace::{STEPS_FILE, Step};
pub use wattle_runs::{
    AgentPrograms, Cancel, CatalogDiff, ChildEnd, ChildError, ChildRequest, ChildRuns,
    DelegateNames, Host, HostError, Listing, ModelInference, NO_ENGINE, Perform, Programs, Report,
    RunHooks, RunParts, RunTree, Settings, Settle, Sink, Span, agents, denied, otel, perform, run,
    service, trace,
};
pub use wattle_store::journal::RunRequest;
pub use wattle_store::{
    BlobStore, CopiedTable, CopyPhase, CopyProgress, DEFAULT_TENANT, ExportedSession, Finding,
    Inspection, Integration, LazyMemory, LazySecrets, LazyState, NextDelta, Privacy, PruneError,
    Pruned, QueueState, Retention, Rewind, S3Bucket, SESSION_ID, SameConversation, Scope,
    SessionDeltas, SessionFiles, SessionFilesError, SessionLine, State, StateValue, Store,
    StoreAddress, StoreCopy, StoreError, StoreLimits, StoreStats, StoreTransaction, Stored,
    StoredMemory, StoredSecrets, TableStats, Tenant, TenantError, TenantStore, TokenLine,
    copy_store, create_folder, is_session_id, ledger, now_ms, own_session, privacy,
};
pub use wiring::{Access, Trusted};

pub use {
    wattle_capability as capability, wattle_catalog as catalog, wattle_machine as machine,
    wattle_model as model, wattle_rt as rt, wattle_shell as shell,
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
