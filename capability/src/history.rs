//! The history of a run, for its programs: its id and its steps so far.

use std::sync::Arc;

use wattle_rt::Config;

/// The port to the history of a run of the agent loop.
pub trait RunHistory: Send + Sync {
    /// Returns the run's id.
    fn run_id(&self) -> &str;

    /// Returns the latest steps, one line each, oldest first.
    fn steps(&self) -> Vec<String>;
}

/// Grants the history of the run that programs belong to. Programs without a run have no such
/// grant.
pub struct RunHistoryGrant(pub Arc<dyn RunHistory>);

impl Config for RunHistoryGrant {
    const CAPABILITY: &'static str = "sys";
}
