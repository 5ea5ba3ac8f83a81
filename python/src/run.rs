//! A run in progress: the messages that it sends to Python, and the answers of Python.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::Value as Json;
use tokio::sync::{Notify, oneshot};
use wattle_bindings::{self as bindings, Answer, Approver, Cancel, Error, ToolError};

use crate::error::raise;
use crate::outcome::Outcome;
use crate::wait::wait;
use crate::waker::{Signal, Waker};

/// The reason for the end of a run whose object was dropped.
const DROPPED: &str = "nobody waits for the run any more";

/// The reason that a program reads if Python dropped its call.
const NO_ANSWER: &str = "the application gave no answer";

/// A message of a run to Python.
enum Message {
    /// A program calls a tool.
    Call { id: u64, tool: String, arguments: Json },
    /// A program needs an approval.
    Ask { id: u64, request: String },
    /// Nobody waits for the answer with this number any more.
    Abandoned { id: u64 },
    /// An event of an agent's run.
    Event(Json),
    /// The run has ended. This is the last message.
    Done(Box<Result<Finished, Error>>),
}

/// The result of a run.
pub(crate) enum Finished {
    /// The outcome of a program.
    Program(Box<bindings::Outcome>),
    /// The report of an agent's run.
    Agent(Json),
}

/// The messages of a run to Python, and the answers that it waits for.
#[derive(Default)]
pub(crate) struct Session {
    /// The number of the run in this process.
    number: u64,
    messages: Mutex<VecDeque<Message>>,
    /// Wakes the thread that waits for a message.
    arrived: Notify,
    /// Wakes the event loop that waits for a message.
    signal: Option<Arc<Signal>>,
    next: AtomicU64,
    answers: Mutex<HashMap<u64, oneshot::Sender<Result<Json, String>>>>,
}

/// The session of a run, as the state that the run's tools share.
#[derive(Default)]
pub(crate) struct Link(pub(crate) Option<Arc<Session>>);

/// A question to Python, which is abandoned when this value is dropped.
struct Question<'s> {
    session: &'s Session,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if lock(&self.session.answers).remove(&self.id).is_some() {
            self.session.push(Message::Abandoned { id: self.id });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// Creates the session of a new run. `waker` is that of the loop on which the run is awaited.
    pub(crate) fn new(waker: Option<&Waker>) -> Arc<Session> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let signal = waker.map(Waker::signal);
        Arc::new(Session { number, signal, ..Session::default() })
    }

    fn push(&self, message: Message) {
        lock(&self.messages).push_back(message);
        match &self.signal {
            Some(signal) => signal.wake(self.number),
            None => self.arrived.notify_one(),
        }
    }

    fn pop(&self) -> Option<Message> {
        lock(&self.messages).pop_front()
    }

    async fn next(&self) -> Message {
        loop {
            match self.pop() {
                Some(message) => return message,
                None => self.arrived.notified().await,
            }
        }
    }

    /// Adds an event of an agent's run.
    pub(crate) fn event(&self, event: Json) {
        self.push(Message::Event(event));
    }

    /// Ends the session.
    pub(crate) fn end(&self, result: Result<Finished, Error>) {
        self.push(Message::Done(Box::new(result)));
    }

    async fn question(&self, message: impl FnOnce(u64) -> Message) -> Result<Json, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        lock(&self.answers).insert(id, answer);
        let _question = Question { session: self, id };
        self.push(message(id));
        answered.await.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
    }

    /// Calls a tool of the application.
    pub(crate) async fn call(&self, tool: String, arguments: Json) -> Result<Json, ToolError> {
        let called = self.question(|id| Message::Call { id, tool, arguments }).await;
        called.map_err(ToolError::new)
    }

    /// Returns the approver that asks the application.
    pub(crate) fn approver(self: &Arc<Self>) -> Arc<dyn Approver> {
        let session = Arc::clone(self);
        bindings::approver(move |request| {
            let session = Arc::clone(&session);
            async move {
                let request = serde_json::json!(request).to_string();
                let answer = session.question(|id| Message::Ask { id, request }).await;
                let answer = answer.map_err(Answer::No);
                let answer = answer.and_then(|answer| {
                    bindings::answer(&answer).map_err(|error| Answer::No(error.reason.clone()))
                });
                answer.unwrap_or_else(|denied| denied)
            }
            .boxed()
        })
    }
}

/// A run in progress. It is cancelled when the object is dropped.
#[pyclass(frozen, module = "wattle._native")]
pub(crate) struct Run {
    id: String,
    session: Arc<Session>,
    cancel: Cancel,
}

impl Run {
    pub(crate) fn new(id: String, session: Arc<Session>, cancel: Cancel) -> Run {
        Run { id, session, cancel }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel.cancel(DROPPED);
    }
}

#[pymethods]
impl Run {
    /// The id of the run.
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    /// The number of the run in this process, by which a waker names it.
    #[getter]
    fn number(&self) -> u64 {
        self.session.number
    }

    /// Waits for the next message, a tuple that begins with its kind.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let message = wait(py, self.session.next())?;
        to_python(py, message)
    }

    /// Returns the next message, or `None` if there is none yet.
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.session.pop().map(|message| to_python(py, message)).transpose()
    }

    /// Answers the question with this number with a JSON text.
    fn answer(&self, id: u64, json: &str) -> PyResult<()> {
        let value = serde_json::from_str(json)
            .map_err(|why| PyValueError::new_err(format!("the answer is not JSON: {why}")))?;
        self.reply(id, Ok(value));
        Ok(())
    }

    /// Answers the question with this number with the reason for a failure.
    fn fail(&self, id: u64, reason: String) {
        self.reply(id, Err(reason));
    }

    /// Cancels the run.
    fn cancel(&self, reason: &str) {
        self.cancel.cancel(reason);
    }
}

impl Run {
    fn reply(&self, id: u64, answer: Result<Json, String>) {
        if let Some(asked) = lock(&self.session.answers).remove(&id) {
            // Fails only if nobody waits for the answer any more.
            _ = asked.send(answer);
        }
    }
}

fn to_python(py: Python<'_>, message: Message) -> PyResult<Bound<'_, PyAny>> {
    match message {
        Message::Call { id, tool, arguments } => {
            tuple(py, ("call", id, tool, arguments.to_string()))
        }
        Message::Ask { id, request } => tuple(py, ("ask", id, request)),
        Message::Abandoned { id } => tuple(py, ("abandoned", id)),
        Message::Event(event) => tuple(py, ("event", event.to_string())),
        Message::Done(result) => match *result {
            Ok(Finished::Program(outcome)) => tuple(py, ("done", Outcome::new(*outcome))),
            Ok(Finished::Agent(report)) => tuple(py, ("done", report.to_string())),
            Err(error) => Err(raise(py, error)),
        },
    }
}

fn tuple<'py>(
    py: Python<'py>,
    items: impl IntoPyObject<'py, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(items.into_pyobject(py)?.into_any())
}
