//! The link between the engine's threads and one environment of JavaScript: the main thread, or a
//! worker.
//!
//! JavaScript numbers its operations and its runs. The link reports the end of an operation, asks
//! JavaScript to call a tool or to answer a request for approval, and passes on the answer. When the
//! environment ends, its operations are dropped, which cancels their runs.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use napi::bindgen_prelude::{Buffer, Either3, FnArgs, Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;
use wattle_bindings::{Cancel, Error, engine};

use crate::fault::{self, Thrown, thrown};
use crate::handle::{OutcomeHandle, ProgramHandle};

/// The kinds of messages to JavaScript.
#[derive(Clone, Copy)]
enum Kind {
    /// An operation succeeded.
    Done = 0,
    /// An operation failed. The text is the error.
    Failed = 1,
    /// A program calls a tool. The text has the tool and its arguments.
    Call = 2,
    /// A run asks for an approval. The text has the request.
    Approve = 3,
    /// The answer to a question is no longer awaited.
    Abandoned = 4,
}

/// An object that accompanies a message.
type Object = Either3<ProgramHandle, OutcomeHandle, Buffer>;

/// A message: its kind, the number of the operation, run or question, a text, an object, and the
/// report of a run.
type Message = FnArgs<(u32, f64, Option<String>, Option<Object>, Option<String>)>;

type Send = ThreadsafeFunction<Message, Unknown<'static>, Message, napi::Status, false, true, 0>;

/// The result of an operation.
pub(crate) enum Value {
    Nothing,
    Text(String),
    Program(ProgramHandle),
    Outcome(OutcomeHandle),
    Bytes(Vec<u8>),
}

/// The link of one environment.
pub(crate) struct Link {
    send: Send,
    /// The questions that JavaScript has not answered yet.
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<Json, String>>>>,
    next_question: AtomicU64,
    /// Cancelled when the environment ends.
    closed: Cancel,
}

/// The link as JavaScript holds it. Its end is that of the environment.
#[napi]
pub struct Hub(Arc<Link>);

#[napi]
impl Hub {
    /// Creates the link. `receive` gets all messages.
    #[napi(constructor)]
    pub fn new(receive: Function<'_, Message, Unknown<'static>>) -> napi::Result<Hub> {
        let send =
            receive.build_threadsafe_function().weak::<true>().callee_handled::<false>().build()?;
        Ok(Hub(Arc::new(Link {
            send,
            questions: Mutex::default(),
            next_question: AtomicU64::new(0),
            closed: Cancel::new(),
        })))
    }

    /// Answers a question: with JSON if `ok` is true, or else with the text of an exception.
    #[napi]
    pub fn answer(&self, question: f64, ok: bool, text: String) {
        // The numbers come from `ask`, and are far below 2^53.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let question = question as u64;
        let waiting = self.0.questions.lock().remove(&question);
        let Some(waiting) = waiting else { return };
        let answer = if ok {
            serde_json::from_str(&text).map_err(|why| format!("the result is not JSON: {why}"))
        } else {
            Err(text)
        };
        _ = waiting.send(answer);
    }
}

impl Hub {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.0.closed.cancel("the environment ended");
    }
}

impl Link {
    /// Runs an operation on the engine's threads, and reports its end.
    ///
    /// # Errors
    /// If the engine cannot be created.
    pub(crate) fn operate(
        self: &Arc<Self>,
        operation: f64,
        work: impl Future<Output = Result<Value, Error>> + std::marker::Send + 'static,
    ) -> Result<(), Thrown> {
        let link = Arc::clone(self);
        engine().map_err(thrown)?.runtime().spawn(async move {
            let done = tokio::select! {
                biased;
                () = link.closed.cancelled() => return,
                done = AssertUnwindSafe(work).catch_unwind() => done,
            };
            link.report(
                operation,
                done.unwrap_or_else(|_| {
                    Err(Error::host("the engine panicked; this is a bug, please report it"))
                }),
            );
        });
        Ok(())
    }

    fn report(&self, operation: f64, done: Result<Value, Error>) {
        let (text, object) = match done {
            Ok(Value::Nothing) => (None, None),
            Ok(Value::Text(text)) => (Some(text), None),
            Ok(Value::Program(program)) => (None, Some(Either3::A(program))),
            Ok(Value::Outcome(outcome)) => (None, Some(Either3::B(outcome))),
            Ok(Value::Bytes(bytes)) => (None, Some(Either3::C(bytes.into()))),
            Err(error) => {
                let outcome = error.outcome.clone();
                let outcome = outcome.map(|outcome| Either3::B(OutcomeHandle(outcome)));
                let report = error.report.as_ref().map(|report| report.to_string());
                let text = Some(fault::json(&error));
                return self.send(Kind::Failed, operation, text, outcome, report);
            }
        };
        self.send(Kind::Done, operation, text, object, None);
    }

    /// Asks JavaScript to call a tool of a run.
    ///
    /// # Errors
    /// If the function throws. The error is the text of the exception.
    pub(crate) async fn call(&self, run: f64, tool: &str, arguments: Json) -> Result<Json, String> {
        self.ask(Kind::Call, run, json!({"tool": tool, "arguments": arguments})).await
    }

    /// Asks JavaScript for the approval of a request of a run.
    ///
    /// # Errors
    /// If the function throws. The error is the text of the exception.
    pub(crate) async fn approve(&self, run: f64, request: Json) -> Result<Json, String> {
        self.ask(Kind::Approve, run, json!({"request": request})).await
    }

    async fn ask(&self, kind: Kind, run: f64, mut text: Json) -> Result<Json, String> {
        let question =
            Question { link: self, number: self.next_question.fetch_add(1, Ordering::Relaxed) };
        let (answer, answered) = oneshot::channel();
        self.questions.lock().insert(question.number, answer);
        if let Some(fields) = text.as_object_mut() {
            fields.insert("question".to_owned(), question.number.into());
        }
        self.send(kind, run, Some(text.to_string()), None, None);
        answered.await.unwrap_or_else(|_| Err("the environment ended".to_owned()))
    }

    /// Sends a message. It is lost if the environment has ended, which has cancelled everything that
    /// waits for an answer.
    fn send(
        &self,
        kind: Kind,
        number: f64,
        text: Option<String>,
        object: Option<Object>,
        report: Option<String>,
    ) {
        let message = (kind as u32, number, text, object, report).into();
        _ = self.send.call(message, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// A question that JavaScript is asked. Dropping it without an answer withdraws it.
struct Question<'a> {
    link: &'a Link,
    number: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.link.questions.lock().remove(&self.number).is_some() {
            #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 questions")]
            let number = self.number as f64;
            self.link.send(Kind::Abandoned, number, None, None, None);
        }
    }
}
