//! Runs: the loop that lets a model answer with programs, its recording, and the service that
//! starts runs and lets clients follow them.

mod act;
pub mod agents;
mod bug;
mod cancel;
mod charge;
mod compact;
mod delegates;
mod driver;
mod durable;
mod error;
mod functions;
mod history;
mod hooks;
mod host;
mod inference;
pub mod journal;
mod kept;
mod listing;
mod manual;
mod nonce;
mod orient;
pub mod otel;
mod parts;
mod programs;
mod prompt;
mod refusal;
mod reload;
mod replay;
mod report;
mod run_loop;
mod run_output;
pub mod service;
mod settings;
mod setup;
mod shared;
mod sink;
mod skills;
mod span;
pub mod trace;
mod tree;

pub use wattle_engine as engine;

pub use act::perform;
pub use bug::{Bug, caught};
pub use cancel::Cancel;
pub use charge::with_account;
pub use compact::{Compacted, compact};
pub use delegates::{ChildEnd, ChildError, ChildRequest, ChildRuns, DelegateNames};
pub use driver::run;
pub use durable::{
    ParkedRun, RunOutcome, artifacts, conversation, end, resume, run as run_journaled,
};
pub use error::HostError;
pub use hooks::{Perform, RunHooks};
pub use host::{AgentPrograms, Host, NO_ENGINE};
pub use inference::ModelInference;
pub use kept::KEPT_LIMITS;
pub use listing::Listing;
pub use parts::{RunParts, Settle};
pub use programs::Programs;
pub use refusal::denied;
pub use reload::{CatalogDiff, check_front_matter};
pub use replay::{ReplayReport, replay};
pub use report::Report;
pub use settings::Settings;
pub use sink::Sink;
pub use span::Timeout;
pub use tree::RunTree;
