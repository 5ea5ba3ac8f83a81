//! Agents: models that answer each step with a program, and the runtime that runs the program.
//!
//! [`run`] drives the loop of `wattle_machine` to completion. It sends requests to the [`model`],
//! runs the requested programs on the shared [`Host`] with the grants of the [`Job`], and reports
//! each event to the [`Sink`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use wattle_agent::{
//!     Access, Host, Job, Settings, Store, Tenant, capability, catalog, model::Cassette, rt,
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
//! let job = Job::new("two and two?", access.grants());
//! let report = wattle_agent::run(&host, &model, &Settings::default(), job, &|_: &_| {}).await;
//! assert_eq!(report.ending.text(), "four");
//! # Ok(()) }
//! ```

mod act;
pub mod agents;
mod authority;
mod bug;
mod cancel;
mod delegates;
mod dialect;
mod driver;
mod embed;
mod error;
mod examples;
mod folder;
mod functions;
mod history;
mod hooks;
mod host;
mod inference;
mod issues;
pub mod journal;
pub mod ledger;
mod lines;
mod listing;
mod manual;
mod meter;
pub mod model;
pub mod moderation;
mod orient;
pub mod otel;
pub mod output;
pub mod prelude;
mod programs;
mod prompt;
mod refusal;
mod reload;
mod report;
mod scene;
mod scope;
pub mod service;
mod settings;
mod setup;
mod shared;
mod sink;
mod span;
mod store;
mod tenant;
pub mod trace;
mod tree;
mod wiring;

pub use act::perform;
pub use authority::{Touched, touched};
pub use cancel::Cancel;
pub use delegates::{ChildEnd, ChildError, ChildRequest, ChildRuns, DelegateNames};
pub use dialect::DialectSetting;
pub use driver::{Job, run};
pub use embed::{
    Agent, AgentBuilder, CallReport, CallResult, Execute, Handler, IntoModel, Middleware, NextCall,
    NextTrip, ReportStatus, RunEvent, RunEventKind, RunFailure, RunReport, RunState, RunStream,
    Runner, RunnerStats, StepCall, StepError, StepOptions, StepReply, StreamItem, Subscription,
    Tool, ToolContext, ToolError, Trip, TripRequest,
};
pub use error::{HostError, StoreError};
pub use examples::{Difference, ExampleFault, check_example};
pub use hooks::{Perform, RunHooks};
pub use host::{AgentPrograms, Host, NO_ENGINE};
pub use inference::ModelInference;
pub use issues::IssueFile;
pub use listing::Listing;
pub use meter::Meter;
pub use programs::Programs;
pub use refusal::denied;
pub use reload::CatalogDiff;
pub use report::Report;
pub use scene::Scene;
pub use scope::Scope;
pub use settings::Settings;
pub use sink::{Sink, now_ms};
pub use span::Span;
pub use store::{
    BlobStore, CopiedTable, CopyPhase, CopyProgress, ExportedSession, Finding, Inspection,
    Integration, LazyMemory, LazySecrets, LazyState, NextDelta, Privacy, PruneError, Pruned,
    QueueState, Retention, Rewind, S3Bucket, SESSION_ID, SameConversation, SessionDeltas,
    SessionFiles, SessionFilesError, SessionLine, State, StateValue, Store, StoreAddress,
    StoreCopy, StoreLimits, StoreStats, StoreTransaction, Stored, StoredMemory, StoredSecrets,
    TableStats, TenantStore, TokenLine, copy_store, is_session_id, own_session, privacy,
};
pub use tenant::{DEFAULT_TENANT, Tenant, TenantError};
pub use trace::{STEPS_FILE, Step};
pub use tree::RunTree;
pub use wattle_machine::{Artifact, RecallContract};
pub use wiring::{Access, Trusted};

pub use {
    wattle_capability as capability, wattle_catalog as catalog, wattle_machine as machine,
    wattle_rt as rt, wattle_shell as shell,
};
