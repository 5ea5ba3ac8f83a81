//! The implementation of the capability `shell`, through which programs call the shell.

use std::sync::Arc;
use std::time::Instant;

use wattle_capability::PortFuture;
use wattle_capability::files::Files;
use wattle_capability::shell::{self, ShellOutput};
use wattle_rt::Account;

use crate::language::Shell;

impl shell::Shell for Shell {
    fn run(
        &self,
        account: &Account,
        files: Arc<Files>,
        script: String,
        stdin: Vec<u8>,
        deadline: Instant,
    ) -> PortFuture<'_, ShellOutput> {
        let shell = self.charged_to(account.clone());
        Box::pin(async move {
            let left = deadline.saturating_duration_since(Instant::now());
            let output = shell.capture(&files, &script, stdin, Some(left)).await;
            Ok(ShellOutput {
                stdout: output.stdout,
                stderr: output.stderr,
                status: output.status.0,
            })
        })
    }
}
