//! The interface for applications that embed agents.
//!
//! An [`Agent`] combines a model, a prompt, [tools](Tool), delegates, and an output type.
//! [`Agent::execute`] runs a task and returns a [`RunReport`]; [`Agent::stream`] also returns the
//! events of the run as they happen. [`Handler`]s receive the [events](RunEvent) of runs, and
//! [`Middleware`] surrounds each exchange with the model and each call.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use wattle_agent::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Weather {
//!     /// The name of a city.
//!     city: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = wattle_agent::model::Cassette::parse(
//! #     "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
//! #      {\"reply\":\"ToolCall::Catalog(\\\"weather\\\", \\\"Oslo\\\")\"}\n\
//! #      {\"reply\":\"ToolCall::Response(\\\"It rains.\\\")\"}\n",
//! # )?;
//! let about = "Returns the weather in a city";
//! let weather = Tool::new("weather", about, |input: Weather, _| async move {
//!     Ok(format!("rain in {}", input.city))
//! });
//! let agent = Agent::builder(model).prompt("You know the weather.").tool(weather).build()?;
//! let report = agent.execute("How is the weather in Oslo?").await?;
//! assert_eq!(report.data, "It rains.");
//! assert_eq!(report.model_calls[0].calls[0].name, "weather");
//! # Ok(()) }
//! ```

mod agent;
mod assemble;
mod builder;
mod conversation;
mod event;
mod execute;
mod failure;
mod middleware;
mod report;
mod run;
mod runner;
mod stream;
mod team;
mod tool;

pub use agent::Agent;
pub use builder::AgentBuilder;
pub use conversation::{AgentSource, Conversation};
pub use event::{Handler, RunEvent, RunEventKind, Subscription};
pub use execute::RunBuilder;
pub use failure::RunFailure;
pub use middleware::{Middleware, ModelCallRequest, NextCall, NextModelCall, RunState};
pub use report::{CallReport, ModelCall, ReportStatus, RunReport};
pub use runner::{CallResult, Runner, RunnerStats, StepCall, StepError, StepOptions, StepReply};
pub use stream::{RunStream, StreamItem};
pub use tool::{InvalidTool, Tool, ToolContext, ToolError, ToolSet};
