//! The history of a run: its id and its steps so far. Its programs can read it.

use std::sync::Arc;

use wattle_rt::Config;

/// The port to the history of a run of the agent loop.
pub trait RunHistory: Send + Sync {
    /// Returns the run's id.
    fn run_id(&self) -> &str;

    /// Returns the latest steps, one line each, oldest first.
    fn steps(&self) -> Vec<String>;
}

/// The grant that lets programs read the history of the agent's run. Programs that run without an
/// agent do not have it.
pub struct RunHistoryGrant(pub Arc<dyn RunHistory>);

impl Config for RunHistoryGrant {
    const CAPABILITY: &'static str = "sys";
}
