//! Pipelines: the stages run at once, each in a shell of its own; the status is that of the last.

use std::sync::Arc;
use std::time::Instant;

use super::Interpreter;
use super::jobs::Task;
use crate::language::ast::{Command, Pipeline, Timed};
use crate::language::interpreter::{Flow, Jump};
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
            [] => self.status = 0,
            [only] => {
                self.command(only).await?;
                self.note(vec![self.status]).await?;
            }
            stages => self.stages(stages).await?,
        }
        if pipeline.negated {
            self.status = u8::from(self.status == 0);
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
        if stages.len() > self.run.bounds.at_once {
            let most = self.run.bounds.at_once;
            return Err(self.bound(format!("the pipeline has more than {most} stages")));
        }
        let mut input = self.fds.get(&0).cloned();
        let mut tasks = Vec::new();
        for (place, stage) in stages.iter().enumerate() {
            let mut shell = self.fork();
            shell.level = 0;
            match input.take() {
                Some(stream) => shell.fds.insert(0, stream),
                None => shell.fds.remove(&0),
            };
            if place + 1 < stages.len() {
                let (output, next) = Stream::pipe();
                shell.fds.insert(1, next);
                input = Some(output);
            }
            let place = match self.run.place() {
                Ok(place) => place,
                Err(words) => return Err(self.bound(words)),
            };
            let command = Arc::clone(stage);
            tasks.push(Some(Task::start(async move {
                let _place = place;
                shell.stage(&command).await
            })));
        }
        let mut statuses = vec![0; tasks.len()];
        while let Some((place, stage)) = next_ended(&mut tasks).await {
            let Some(stage) = stage else { return Err(self.bound("a stage failed: this is a bug in the host".into())) };
            if let Some(status) = statuses.get_mut(place) {
                *status = stage.status;
            }
            if stage.killed {
                // Dropping them ends the other stages.
                tasks.clear();
                self.status = stage.status;
                return Ok(());
            }
        }
        self.status = statuses.last().copied().unwrap_or_default();
        if self.options.pipefail {
            self.status = statuses.iter().rev().copied().find(|status| *status != 0).unwrap_or_default();
        }
        let status = self.status;
        self.note(statuses).await?;
        self.status = status;
        Ok(())
    }

    /// Runs one stage in this shell, which is its own.
    async fn stage(&mut self, command: &Command) -> Stage {
        self.killed = false;
        if self.command(command).await != Err(Jump::Exit) || !self.run.is_ended() {
            self.finish().await;
        }
        Stage { status: self.status, killed: self.killed }
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
        if let Some(stream) = self.fds.get(&2).cloned() {
            // Whoever closed the place for messages does not want them.
            let _ = stream.write(text.as_bytes()).await;
        }
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
