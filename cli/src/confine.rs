//! What a command does before it starts threads and reads untrusted data.

use crate::broker;
use crate::config::Config;
use crate::fault::Fault;
use crate::walls::{self, Needs, Walls};

/// Starts the process that starts MCP servers, which is outside of the walls, and then confines this
/// process to what its command needs.
///
/// # Errors
/// If the broker cannot be started, or the kernel rejects the rules.
pub(crate) fn confine(config: &Config, needs: &Needs) -> Result<Walls, Fault> {
    broker::start(config)?;
    walls::raise(config, needs)
}
