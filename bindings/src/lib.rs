//! Wattle as other languages embed it: what their packages share.
//!
//! A package turns its language's functions into [`Tool`]s, its options into the settings below, and
//! an [`Error`] into an exception. Everything else is here: the [engine] of the process, also
//! of one that was forked, the [programs](Program) that run without a model, their [grants](Grants),
//! the [agents](Agent) and the events of their runs.
//!
//! ```
//! use wattle_bindings::{RunOptions, Scope, Tool, ToolContext, ToolError, engine};
//! use serde_json::{Value, json};
//!
//! let schema = json!({
//!     "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
//! });
//! let weather = |arguments: Value, _: ToolContext| async move {
//!     Ok::<_, ToolError>(json!({"city": arguments["city"], "degrees": 7}))
//! };
//! let tool = Tool::with_schema("weather", "Returns the weather in a city", schema, weather)
//!     .result(json!({"type": "object"}));
//! let outcome = engine()?.runtime().block_on(async {
//!     let scope = Scope::new(&[], &[tool])?;
//!     let program = scope.prepare("(let $w (weather (arg 0))) (out \"{}: {}\" $w.city $w.degrees)").await?;
//!     program.run(vec!["Oslo".to_owned()], RunOptions::default()).await
//! })?;
//! assert_eq!(outcome.text(), "Oslo: 7");
//! # Ok::<(), wattle_bindings::Error>(())
//! ```

mod agent;
mod approval;
mod error;
mod grants;
mod language;
mod outcome;
mod process;
mod program;
mod scope;

pub use agent::{Agent, AgentRun, AgentRunOptions, AgentSettings, ModelSettings};
pub use approval::{ApprovalQuestion, ApprovalRequest, answer, approver};
pub use error::{Error, ErrorDetails, ErrorKind};
pub use grants::{FilesGrant, FolderGrant, GrantSettings, Grants};
pub use language::language;
pub use outcome::Outcome;
pub use process::{Engine, engine};
pub use program::{Program, RunOptions};
pub use scope::Scope;
pub use wattle_agent::host::capability::policy::{Answer, Approver};
pub use wattle_agent::{Cancel, RunState, Tool, ToolContext, ToolError};
