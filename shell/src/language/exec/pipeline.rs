//! Pipelines: the stages run at once, each in a shell of its own; the status is that of the last.

use std::sync::Arc;
use std::time::Instant;

use crate::language::ast::{Command, Pipeline, Timed};
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::task::Task;
use crate::stream::Stream;

/// How a stage ended.
struct Stage {
    status: u8,
    /// It was killed, and the pipeline with it.
    killed: bool,
}

impl Interpreter {
    pub(super) async fn pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let start = Instant::now();
        match pipeline.stages.as_slice() {
            [] => self.last.status = 0,
            [only] => {
                self.command(only).await?;
                self.note(vec![self.last.status]).await?;
            }
            stages => self.stages(stages).await?,
        }
        if pipeline.negated {
            self.last.status = u8::from(self.last.status == 0);
        }
        if let Some(timed) = pipeline.timed {
            self.tell_time(start, timed).await;
        }
        Ok(())
    }

    /// Sets `PIPESTATUS`.
    async fn note(&mut self, statuses: Vec<u8>) -> Flow {
        let texts = statuses.into_iter().map(|status| status.to_string()).collect();
        // A script that made it readonly does without.
        let _ = self.set_list("PIPESTATUS", texts)?;
        Ok(())
    }

    async fn stages(&mut self, stages: &[Arc<Command>]) -> Flow {
        if stages.len() > self.run.bounds.parallel {
            let most = self.run.bounds.parallel;
            return Err(self.exceed(format!("the pipeline has more than {most} stages")));
        }
        let mut input = self.descriptors.open.get(&0).cloned();
        let mut tasks = Vec::new();
        for (place, stage) in stages.iter().enumerate() {
            let mut shell = self.fork();
            shell.execution.stack_level = 0;
            match input.take() {
                Some(stream) => shell.descriptors.open.insert(0, stream),
                None => shell.descriptors.open.remove(&0),
            };
            if place + 1 < stages.len() {
                let (output, next) = Stream::pipe();
                shell.descriptors.open.insert(1, next);
                input = Some(output);
            }
            let place = match self.run.take_slot() {
                Ok(place) => place,
                Err(words) => return Err(self.exceed(words)),
            };
            let command = Arc::clone(stage);
            tasks.push(Some(Task::start(async move {
                let _place = place;
                shell.stage(&command).await
            })));
        }
        let mut statuses = vec![0; tasks.len()];
        while let Some((place, stage)) = next_ended(&mut tasks).await {
            let Some(stage) = stage else {
                return Err(self.exceed("a stage failed: this is a bug in the host".into()));
            };
            if let Some(status) = statuses.get_mut(place) {
                *status = stage.status;
            }
            if stage.killed {
                // Dropping them ends the other stages.
                tasks.clear();
                self.last.status = stage.status;
                return Ok(());
            }
        }
        self.last.status = statuses.last().copied().unwrap_or_default();
        if self.options.pipefail {
            self.last.status = statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or_default();
        }
        let status = self.last.status;
        self.note(statuses).await?;
        self.last.status = status;
        Ok(())
    }

    /// Runs one stage in this shell, which is its own.
    async fn stage(&mut self, command: &Command) -> Stage {
        self.last.killed = false;
        if self.command(command).await != Err(Jump::Exit) || !self.run.is_ended() {
            self.finish().await;
        }
        Stage { status: self.last.status, killed: self.last.killed }
    }

    async fn tell_time(&mut self, start: Instant, timed: Timed) {
        let seconds = start.elapsed().as_secs_f64();
        let text = match timed {
            Timed::Posix => format!("real {seconds:.2}\nuser {seconds:.2}\nsys 0.00\n"),
            Timed::Plain => {
                let minutes = (seconds / 60.0).floor();
                let rest = seconds - minutes * 60.0;
                format!("\nreal\t{minutes}m{rest:.3}s\nuser\t{minutes}m{rest:.3}s\nsys\t0m0.000s\n")
            }
        };
        self.write_stderr(&text).await;
    }
}

/// The next stage that ends, with its place; nothing when all have.
async fn next_ended(tasks: &mut [Option<Task<Stage>>]) -> Option<(usize, Option<Stage>)> {
    if tasks.iter().all(Option::is_none) {
        return None;
    }
    let (place, stage) = std::future::poll_fn(|context| {
        for (place, task) in tasks.iter_mut().enumerate() {
            if let Some(running) = task
                && let std::task::Poll::Ready(stage) = running.poll_end(context)
            {
                *task = None;
                return std::task::Poll::Ready((place, stage));
            }
        }
        std::task::Poll::Pending
    })
    .await;
    Some((place, stage))
}
