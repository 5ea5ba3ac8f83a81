//! Jobs: what runs in the background, and the tasks that everything in parallel is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::JoinHandle;

use super::Interpreter;
use crate::language::ast::Chain;
use crate::language::interpreter::{Flow, Jump};
use crate::stream::Stream;

/// A task that is ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Task<T = u8>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(crate) fn start(work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(work))
    }

    /// Its result; nothing if it failed.
    pub(crate) async fn finish(mut self) -> Option<T> {
        std::future::poll_fn(|context| self.poll_end(context)).await
    }

    /// Whether it has ended.
    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One job.
#[derive(Debug)]
struct Job {
    number: usize,
    pid: u32,
    text: String,
    task: Option<Task>,
    status: u8,
}

/// The jobs of one shell. A copy has none: jobs belong to the shell that started them.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    list: Vec<Job>,
    last: Option<u32>,
}

impl Clone for Jobs {
    fn clone(&self) -> Jobs {
        Jobs { list: Vec::new(), last: self.last }
    }
}

impl Jobs {
    /// `$!`
    pub(crate) fn last_pid(&self) -> Option<u32> {
        self.last
    }

    fn add(&mut self, pid: u32, text: String, task: Task) {
        let number = self.list.iter().map(|job| job.number).max().unwrap_or_default() + 1;
        self.last = Some(pid);
        self.list.push(Job { number, pid, text, task: Some(task), status: 0 });
    }

    /// Counts a process substitution as `$!`.
    pub(crate) fn add_hidden(&mut self, pid: u32, task: Task) {
        self.last = Some(pid);
        self.list.push(Job { number: 0, pid, text: String::new(), task: Some(task), status: 0 });
    }

    /// Gives the tasks that still run away.
    pub(crate) fn release(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.list).into_iter().filter_map(|job| job.task).collect()
    }

    /// The place of the job that `%n`, `%%` or a number of `$!` names.
    fn place(&self, word: &str) -> Option<usize> {
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

    /// Notes which have ended, without waiting.
    fn look(&mut self, context: &mut Context<'_>) {
        for job in &mut self.list {
            if let Some(task) = &mut job.task
                && let Poll::Ready(status) = task.poll_end(context)
            {
                job.status = status.unwrap_or(137);
                job.task = None;
            }
        }
    }

    /// Lines for `jobs`.
    pub(crate) async fn lines(&mut self) -> Vec<String> {
        self.look_now().await;
        let lines = self.list.iter().filter(|job| job.number > 0).map(|job| {
            let state = match (&job.task, job.status) {
                (Some(_), _) => "Running".to_owned(),
                (None, 0) => "Done".to_owned(),
                (None, status) => format!("Exit {status}"),
            };
            let ampersand = if job.task.is_some() { " &" } else { "" };
            format!("[{}]   {state:<24}{}{ampersand}", job.number, job.text)
        });
        let lines = lines.collect();
        self.list.retain(|job| job.task.is_some());
        lines
    }

    async fn look_now(&mut self) {
        std::future::poll_fn(|context| {
            self.look(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for the job at a place, and forgets it.
    async fn wait_at(&mut self, place: usize) -> Option<u8> {
        let job = self.list.get_mut(place)?;
        if let Some(task) = &mut job.task {
            let status = std::future::poll_fn(|context| task.poll_end(context)).await;
            job.status = status.unwrap_or(137);
            job.task = None;
        }
        let status = job.status;
        self.list.remove(place);
        Some(status)
    }

    /// Waits for a named job; nothing if there is none.
    pub(crate) async fn wait_for(&mut self, word: &str) -> Option<u8> {
        let place = self.place(word)?;
        self.wait_at(place).await
    }

    /// Waits for all.
    pub(crate) async fn wait_all(&mut self) {
        while !self.list.is_empty() {
            self.wait_at(0).await;
        }
    }

    /// Waits for whichever ends next.
    pub(crate) async fn wait_any(&mut self) -> Option<u8> {
        if self.list.is_empty() {
            return None;
        }
        let place = std::future::poll_fn(|context| {
            self.look(context);
            match self.list.iter().position(|job| job.task.is_none()) {
                Some(place) => Poll::Ready(place),
                None => Poll::Pending,
            }
        })
        .await;
        Some(self.list.remove(place).status)
    }

    /// Waits until one that still runs ends; its status is kept for `wait`.
    async fn wait_one(&mut self) {
        let running = self.list.iter().filter(|job| job.task.is_some()).count();
        std::future::poll_fn(|context| {
            self.look(context);
            let now = self.list.iter().filter(|job| job.task.is_some()).count();
            if now < running || now == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Whether there is a job of that name that runs.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.place(word).and_then(|place| self.list.get(place)).is_some_and(|job| job.task.is_some())
    }

    /// Ends a job; false if there is none of that name.
    pub(crate) fn kill(&mut self, word: &str) -> bool {
        let Some(job) = self.place(word).and_then(|place| self.list.get_mut(place)) else { return false };
        if job.task.take().is_some() {
            job.status = 143;
        }
        true
    }
}

impl Interpreter {
    /// Starts a chain in the background.
    pub(super) async fn start_job(&mut self, chain: Arc<Chain>, text: String) -> Flow {
        while self.run.is_busy() && self.jobs.list.iter().any(|job| job.task.is_some()) {
            self.jobs.wait_one().await;
        }
        self.breathe().await?;
        let mut shell = self.fork();
        shell.fds.insert(0, Stream::null());
        let place = self.place_beside(&mut shell)?;
        let task = Task::start(async move {
            let _place = place;
            if shell.chain(&chain).await != Err(Jump::Exit) || !shell.run.is_ended() {
                shell.finish().await;
            }
            shell.status
        });
        let pid = self.run.next_pid();
        self.jobs.add(pid, text, task);
        self.status = 0;
        Ok(())
    }
}
