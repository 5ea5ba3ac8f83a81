//! Where the shell's commands come from.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::Files;

use crate::command::{Command, Spawn, Status};
use crate::toolbox::{Ended, StageBounds};

/// The commands that are neither functions nor builtins of the shell: the [toolbox](crate::Toolbox) is such, and tests have their own.
pub trait Commands: Send + Sync {
    /// Their names.
    fn names(&self) -> Vec<String>;

    /// Whether there is one of that name.
    fn has(&self, name: &str) -> bool;

    /// Runs one to its end, within bounds. What it starts in turn goes by `spawn`.
    fn run<'a>(
        &'a self,
        command: Command,
        files: &'a Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: &'a StageBounds,
    ) -> BoxFuture<'a, Ended>;
}

/// No commands at all: the shell has only its builtins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCommands;

impl Commands for NoCommands {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn has(&self, _: &str) -> bool {
        false
    }

    fn run<'a>(&'a self, _: Command, _: &'a Arc<Files>, _: Arc<dyn Spawn>, _: &'a StageBounds) -> BoxFuture<'a, Ended> {
        async { Ended::Exited(Status::NOT_FOUND) }.boxed()
    }
}
