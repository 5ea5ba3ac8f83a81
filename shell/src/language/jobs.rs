//! The background jobs of one shell.

use std::task::{Context, Poll};

use super::task::Task;
use crate::ledger::Text;

/// A background job, or a process substitution.
#[derive(Debug)]
struct Job {
    /// Number that `jobs` shows. 0 for a process substitution, which is not listed.
    number: usize,
    pid: u32,
    text: Option<Text>,
    task: Option<Task>,
    status: u8,
}

/// A running job of the shell that this one is a copy of.
#[derive(Clone, Debug)]
struct InheritedJob {
    number: usize,
    pid: u32,
    text: Option<Text>,
}

/// A job that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedJob {
    pub(crate) pid: u32,
    pub(crate) status: u8,
}

/// The jobs of one shell. A clone has no jobs, because a job belongs to the shell that
/// started it. It only lists those that were running, as in `$(jobs -p)`.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    list: Vec<Job>,
    inherited: Vec<InheritedJob>,
    last: Option<u32>,
}

impl Clone for Jobs {
    fn clone(&self) -> Jobs {
        let mut inherited = self.inherited.clone();
        for job in &self.list {
            if job.number > 0 && job.task.as_ref().is_some_and(Task::is_running) {
                let (number, pid, text) = (job.number, job.pid, job.text.clone());
                inherited.push(InheritedJob { number, pid, text });
            }
        }
        Jobs { list: Vec::new(), inherited, last: self.last }
    }
}

impl Jobs {
    /// Returns the value of `$!`, or `None` if no job has been started.
    pub(crate) fn last_pid(&self) -> Option<u32> {
        self.last
    }

    /// Adds a background job.
    pub(crate) fn add(&mut self, pid: u32, text: Text, task: Task) {
        let number = self.list.iter().map(|job| job.number).max().unwrap_or_default() + 1;
        self.last = Some(pid);
        let text = Some(text);
        let task = Some(task);
        self.list.push(Job { number, pid, text, task, status: 0 });
    }

    /// Adds a process substitution. It sets `$!` but is not listed.
    pub(crate) fn add_hidden(&mut self, pid: u32, task: Task) {
        self.last = Some(pid);
        self.list.push(Job { number: 0, pid, text: None, task: Some(task), status: 0 });
    }

    /// Removes all jobs and returns the tasks of those that are still running.
    pub(crate) fn release(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.list).into_iter().filter_map(|job| job.task).collect()
    }

    /// Returns the index of the job that `word` names, or `None` if there is no such job. The word
    /// is `%n`, `%%` for the latest job, or a pid.
    fn find(&self, word: &str) -> Option<usize> {
        match word.strip_prefix('%') {
            Some("" | "%" | "+") => self.list.iter().rposition(|job| job.number > 0),
            Some(number) => {
                let number = number.parse::<usize>().ok()?;
                self.list.iter().position(|job| job.number == number)
            }
            None => {
                let pid = word.parse::<u32>().ok()?;
                self.list.iter().position(|job| job.pid == pid)
            }
        }
    }

    /// Records the statuses of jobs that have ended.
    fn poll_ended(&mut self, context: &mut Context<'_>) {
        for job in &mut self.list {
            if let Some(task) = &mut job.task
                && let Poll::Ready(status) = task.poll_end(context)
            {
                job.status = status.unwrap_or(137);
                job.task = None;
            }
        }
    }

    /// Returns true if a job is running.
    pub(crate) fn are_running(&self) -> bool {
        self.list.iter().any(|job| job.task.is_some())
    }

    /// Returns the output lines of `jobs`, or only those of the running jobs. Removes the jobs that
    /// have ended.
    pub(crate) async fn lines(&mut self, running: bool) -> Vec<String> {
        self.update().await;
        let line = |number: usize, state: &str, text: &Option<Text>, end: &str| {
            let text = text.as_deref().unwrap_or_default();
            format!("[{number}]   {state:<24}{text}{end}")
        };
        let inherited = self.inherited.iter();
        let mut lines: Vec<String> =
            inherited.map(|job| line(job.number, "Running", &job.text, " &")).collect();
        for job in self.list.iter().filter(|job| job.number > 0) {
            match (&job.task, job.status) {
                (Some(_), _) => lines.push(line(job.number, "Running", &job.text, " &")),
                (None, _) if running => {}
                (None, 0) => lines.push(line(job.number, "Done", &job.text, "")),
                (None, status) => {
                    lines.push(line(job.number, &format!("Exit {status}"), &job.text, ""));
                }
            }
        }
        if !running {
            self.list.retain(|job| job.task.is_some());
        }
        lines
    }

    /// Returns the pids of the jobs that are running.
    pub(crate) async fn pids(&mut self) -> Vec<u32> {
        self.update().await;
        let jobs = self.list.iter().filter(|job| job.number > 0 && job.task.is_some());
        let inherited = self.inherited.iter().map(|job| job.pid);
        inherited.chain(jobs.map(|job| job.pid)).collect()
    }

    async fn update(&mut self) {
        std::future::poll_fn(|context| {
            self.poll_ended(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for the job at an index and removes it.
    async fn wait_at(&mut self, index: usize) -> Option<EndedJob> {
        let job = self.list.get_mut(index)?;
        if let Some(task) = &mut job.task {
            let status = std::future::poll_fn(|context| task.poll_end(context)).await;
            job.status = status.unwrap_or(137);
            job.task = None;
        }
        let ended = EndedJob { pid: job.pid, status: job.status };
        self.list.remove(index);
        Some(ended)
    }

    /// Waits for the job that a word names. Returns `None` if there is no such job.
    pub(crate) async fn wait_for(&mut self, word: &str) -> Option<EndedJob> {
        let index = self.find(word)?;
        self.wait_at(index).await
    }

    /// Waits for all jobs.
    pub(crate) async fn wait_all(&mut self) {
        while !self.list.is_empty() {
            self.wait_at(0).await;
        }
    }

    /// Waits for the job that ends first and removes it. Returns `None` if there are no jobs.
    pub(crate) async fn wait_any(&mut self) -> Option<EndedJob> {
        if self.list.is_empty() {
            return None;
        }
        let index = std::future::poll_fn(|context| {
            self.poll_ended(context);
            match self.list.iter().position(|job| job.task.is_none()) {
                Some(index) => Poll::Ready(index),
                None => Poll::Pending,
            }
        })
        .await;
        let job = self.list.remove(index);
        Some(EndedJob { pid: job.pid, status: job.status })
    }

    /// Waits until one of the running jobs ends. Keeps its status for `wait`.
    pub(crate) async fn wait_one(&mut self) {
        let running = self.list.iter().filter(|job| job.task.is_some()).count();
        std::future::poll_fn(|context| {
            self.poll_ended(context);
            let now = self.list.iter().filter(|job| job.task.is_some()).count();
            if now < running || now == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Returns true if a word names a running job.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.find(word).and_then(|index| self.list.get(index)).is_some_and(|job| job.task.is_some())
    }

    /// Ends the job that `word` names. Returns false if there is no such job.
    pub(crate) fn kill(&mut self, word: &str) -> bool {
        let Some(job) = self.find(word).and_then(|index| self.list.get_mut(index)) else {
            return false;
        };
        if job.task.take().is_some() {
            job.status = 143;
        }
        true
    }
}
