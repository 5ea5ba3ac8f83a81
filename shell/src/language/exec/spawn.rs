//! Runs commands on behalf of other commands, such as `xargs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::command::{Command, Spawn, Status};
use crate::language::interpreter::Interpreter;
use crate::language::run::Run;
use crate::language::task::Task;

/// A [`Spawn`] that runs each command in its own shell.
pub(crate) struct Spawner {
    pub(crate) run: Arc<Run>,
    pub(crate) depth: u32,
}

impl Spawn for Spawner {
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status> {
        let task = Task::start(run(Arc::clone(&self.run), self.depth, command));
        async move {
            let ended = match timeout {
                Some(timeout) => match tokio::time::timeout(timeout, task.finish()).await {
                    Ok(ended) => ended,
                    Err(_) => return Status::TIMED_OUT,
                },
                None => task.finish().await,
            };
            ended.unwrap_or(Status::CANNOT_RUN)
        }
        .boxed()
    }
}

/// Runs a command in its own shell and returns its status.
async fn run(run: Arc<Run>, depth: u32, command: Command) -> Status {
    let mut shell = Interpreter::new(run, command.fds.iter().cloned().collect());
    shell.execution.depth = depth;
    shell.lifecycle.subshell = true;
    shell.folders.current = command.cwd.clone();
    for (name, value) in &command.env {
        shell.preset(name, value, true);
    }
    if shell.enter_level().is_ok() {
        let ended = shell.external(command.argv, command.env).await;
        shell.last.status = ended.map_or(shell.last.status, |ended| ended.status().0);
    }
    Status(shell.last.status)
}
