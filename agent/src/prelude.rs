//! The items that most applications use: `use wattle_agent::prelude::*;`.

pub use crate::embed::{
    Agent, AgentBuilder, AgentSource, CallResult, Conversation, Handler, Middleware, ModelCall,
    ModelCallRequest, NextCall, NextModelCall, ReportStatus, RunBuilder, RunEvent, RunEventKind,
    RunFailure, RunReport, RunState, RunStream, Runner, StepOptions, StepReply, StreamItem,
    Subscription, Tool, ToolContext, ToolError,
};
pub use crate::{Cancel, Host, Settings};
pub use wattle_runs::agents::{AgentError, AgentSpec};
