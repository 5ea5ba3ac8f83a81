//! The recording of runs in a journal, and what can be read from it.
//!
//! A run consists of its [`RunStart`], the [`Turn`]s of its state machine (inputs and effects), and
//! the [`RecordedCall`]s that its programs made to host functions. From these records, another
//! process can resume a stopped run, replay a run without a model or a network, and [fork] it at any
//! step.

mod abort;
mod approval;
mod budget;
mod calls;
mod error;
mod fork;
mod recorder;
mod requests;
mod tape;

pub(crate) use abort::abort;
pub(crate) use approval::record_answers;
pub use approval::{Approval, PendingApproval, waiting};
pub(crate) use budget::restore;
pub use calls::{CallView, calls};
pub use error::ResumeError;
pub use fork::{ForkError, ForkedRun, RunLimits, fork, step_end};
pub(crate) use recorder::{Played, ResumePoint, TurnRecorder};
pub use requests::{AnswerView, FunctionView, MessageView, RequestView, requests};
pub use tape::Difference;
pub(crate) use tape::{HOST_NAMES, Mode, RunTape, describe, is_changed, kept_json};
pub use wattle_store::journal::*;
