//! Running commands on behalf of other commands, such as `xargs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::command::{Command, Spawn, Status};
use crate::language::interpreter::Interpreter;
use crate::language::run::Run;

/// A [`Spawn`] that runs each command in its own shell.
pub(crate) struct Spawner {
    pub(crate) run: Arc<Run>,
    pub(crate) depth: u32,
}

impl Spawn for Spawner {
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status> {
        async move {
            let mut shell =
                Interpreter::new(Arc::clone(&self.run), command.fds.iter().cloned().collect());
            shell.execution.depth = self.depth;
            shell.lifecycle.subshell = true;
            shell.folders.current = command.cwd.clone();
            for (name, value) in &command.env {
                shell.preset(name, value, true);
            }
            let ran = async {
                if shell.enter_level().is_ok() {
                    let ended = shell.external(command.argv, command.env).await;
                    shell.last.status = ended.map_or(shell.last.status, |ended| ended.status().0);
                }
                Status(shell.last.status)
            };
            match timeout {
                Some(timeout) => {
                    tokio::time::timeout(timeout, ran).await.unwrap_or(Status::TIMED_OUT)
                }
                None => ran.await,
            }
        }
        .boxed()
    }
}
