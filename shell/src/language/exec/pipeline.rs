//! Execution of pipelines. The stages run in parallel, each in its own shell. The status of a
//! pipeline is that of its last stage or, under `set -o pipefail`, of its last stage that failed.

use std::sync::Arc;
use std::time::Instant;

use crate::language::ast::{Command, Pipeline, TimeFormat};
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::task::Task;
use crate::stream::Stream;

/// Result of a stage.
struct StageResult {
    status: u8,
    /// If true, the host killed the stage, so the pipeline ends.
    killed: bool,
}

impl Interpreter {
    pub(super) async fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let start = Instant::now();
        match pipeline.stages.as_slice() {
            [] => self.last.status = 0,
            [only] => {
                self.command(only).await?;
                self.set_pipe_status(vec![self.last.status])?;
            }
            stages => self.stages(stages).await?,
        }
        if pipeline.negated {
            self.last.status = u8::from(self.last.status == 0);
        }
        if let Some(timed) = pipeline.timed {
            self.report_time(start, timed).await;
        }
        Ok(())
    }

    /// Sets `PIPESTATUS`.
    fn set_pipe_status(&mut self, statuses: Vec<u8>) -> Flow {
        let texts = statuses.into_iter().map(|status| status.to_string()).collect();
        // A readonly `PIPESTATUS` keeps its value.
        let _ = self.set_list("PIPESTATUS", texts)?;
        Ok(())
    }

    async fn stages(&mut self, stages: &[Arc<Command>]) -> Flow {
        if stages.len() > self.run.bounds.parallel {
            let max = self.run.bounds.parallel;
            return Err(self.exceed(format!("the pipeline has more than {max} stages")));
        }
        let mut input = self.descriptors.open.get(&0).cloned();
        let mut tasks = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            let mut shell = self.fork();
            shell.execution.stack_level = 0;
            match input.take() {
                Some(stream) => shell.descriptors.open.insert(0, stream),
                None => shell.descriptors.open.remove(&0),
            };
            if index + 1 < stages.len() {
                let (reader, writer) = Stream::pipe();
                shell.descriptors.open.insert(1, writer);
                input = Some(reader);
            }
            let slot = match self.run.take_slot() {
                Ok(slot) => slot,
                Err(message) => return Err(self.exceed(message)),
            };
            let command = Arc::clone(stage);
            tasks.push(Some(Task::start_local(async move {
                let _slot = slot;
                shell.stage(&command).await
            })));
        }
        let mut statuses = vec![0; tasks.len()];
        while let Some((index, result)) = next_ended(&mut tasks).await {
            let Some(result) = result else {
                return Err(self.exceed("a stage failed: this is a bug in the host".into()));
            };
            if let Some(status) = statuses.get_mut(index) {
                *status = result.status;
            }
            if result.killed {
                // Dropping the tasks ends the other stages.
                tasks.clear();
                self.last.status = result.status;
                return Ok(());
            }
        }
        self.last.status = statuses.last().copied().unwrap_or_default();
        if self.options.pipefail {
            self.last.status =
                statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or_default();
        }
        let status = self.last.status;
        self.set_pipe_status(statuses)?;
        self.last.status = status;
        Ok(())
    }

    /// Runs a stage in this shell, which exists only for that stage.
    async fn stage(&mut self, command: &Command) -> StageResult {
        self.last.killed = false;
        if self.command(command).await != Err(Jump::Exit) || !self.run.is_ended() {
            self.finish().await;
        }
        StageResult { status: self.last.status, killed: self.last.killed }
    }

    /// Prints the report of `time`.
    async fn report_time(&mut self, start: Instant, timed: TimeFormat) {
        let seconds = start.elapsed().as_secs_f64();
        let text = match timed {
            TimeFormat::Posix => format!("real {seconds:.2}\nuser {seconds:.2}\nsys 0.00\n"),
            TimeFormat::Plain => {
                let minutes = (seconds / 60.0).floor();
                let rest = seconds - minutes * 60.0;
                format!("\nreal\t{minutes}m{rest:.3}s\nuser\t{minutes}m{rest:.3}s\nsys\t0m0.000s\n")
            }
        };
        self.write_stderr(&text).await;
    }
}

/// Waits until one of the running stages ends. Returns its index and its result, which is `None` if
/// the stage panicked. Returns `None` if all stages have ended.
async fn next_ended(
    tasks: &mut [Option<Task<StageResult>>],
) -> Option<(usize, Option<StageResult>)> {
    if tasks.iter().all(Option::is_none) {
        return None;
    }
    let ended = std::future::poll_fn(|context| {
        for (index, task) in tasks.iter_mut().enumerate() {
            if let Some(running) = task
                && let std::task::Poll::Ready(result) = running.poll_end(context)
            {
                *task = None;
                return std::task::Poll::Ready((index, result));
            }
        }
        std::task::Poll::Pending
    })
    .await;
    Some(ended)
}
