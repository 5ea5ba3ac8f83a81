//! Agents for applications: models that answer each step with a program, and the runtime that runs
//! the program.
//!
//! An [`Agent`] combines a model, a prompt, [tools](Tool), delegates and an output type. The module
//! [`host`] has everything that a program needs to host agents itself, as the command line and the
//! server do: the run service, the store, the policy, and the crates below.
//!
//! ```
//! use wattle_agent::Agent;
//! use wattle_agent::model::Cassette;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let text = "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
//! #     {\"reply\":\"ToolCall::Response(\\\"four\\\")\"}\n";
//! // An application names a model: `Agent::builder("openai:gpt-5")`.
//! let agent = Agent::builder(Cassette::parse(text)?).build()?;
//! assert_eq!(agent.execute("two and two?").await?.data, "four");
//! # Ok(()) }
//! ```

mod authority;
mod embed;
mod examples;
pub mod host;
mod issues;
pub mod prelude;
mod scene;
mod tool_program;
mod wiring;

pub use embed::{
    Agent, AgentBuilder, CallReport, CallResult, Handler, InvalidTool, Middleware, ModelCall,
    ModelCallRequest, NextCall, NextModelCall, ReportStatus, RunBuilder, RunEvent, RunEventKind,
    RunFailure, RunReport, RunState, RunStream, Runner, RunnerStats, StepCall, StepError,
    StepOptions, StepReply, StreamItem, Subscription, Tool, ToolContext, ToolError, ToolSet,
};
pub use wattle_model::{self as model, IntoModel, output};
pub use wattle_runs::{Cancel, Host, Settings, agents};
pub use wattle_store::{Store, Tenant};
pub use wiring::Resources;
