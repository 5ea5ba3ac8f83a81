//! Starts background jobs.

use std::sync::Arc;

use crate::language::ast::Chain;
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::task::Task;
use crate::stream::Stream;

impl Interpreter {
    /// Starts a chain as a background job.
    pub(super) async fn start_job(&mut self, chain: Arc<Chain>, text: String) -> Flow {
        while self.run.is_busy() && self.jobs.are_running() {
            self.jobs.wait_one().await;
        }
        self.checkpoint().await?;
        let mut shell = self.fork();
        shell.descriptors.open.insert(0, Stream::null());
        let slot = self.slot_for(&mut shell)?;
        let task = Task::start(async move {
            let _slot = slot;
            if shell.chain(&chain).await != Err(Jump::Exit) || !shell.run.is_ended() {
                shell.finish().await;
            }
            shell.last.status
        });
        let (pid, text) = (self.run.next_pid(), self.stored(text)?);
        self.jobs.add(pid, text, task);
        self.last.status = 0;
        Ok(())
    }
}
