//! The id and the latest steps of an agent's run, which the run's programs can read.

use std::sync::Arc;

use wattle_rt::Config;

/// The port to the history of an agent's run.
pub trait RunHistory: Send + Sync {
    /// Returns the run's id.
    fn run_id(&self) -> &str;

    /// Returns the latest steps, one line each, oldest first.
    fn steps(&self) -> Vec<String>;
}

/// The grant that lets programs read the history of the agent's run. Programs that run without an
/// agent do not have this grant.
pub struct RunHistoryGrant(pub Arc<dyn RunHistory>);

impl Config for RunHistoryGrant {
    const CAPABILITIES: &'static [&'static str] = &[];
}
