//! What the host tells the programs of a run about that run: its id, and its steps so far.

use std::sync::Arc;

use wattle_rt::Config;

/// The port to a run of the loop, implemented by whoever drives it.
pub trait RunHistory: Send + Sync {
    /// The run's id.
    fn run_id(&self) -> &str;

    /// The steps so far, one line each, oldest first; a bounded number of them.
    fn steps(&self) -> Vec<String>;
}

/// The run that programs belong to; programs that run by themselves have none. It widens nothing: what is told is what the run itself did.
pub struct RunHistoryGrant(pub Arc<dyn RunHistory>);

impl Config for RunHistoryGrant {
    const CAPABILITY: &'static str = "sys";
}
