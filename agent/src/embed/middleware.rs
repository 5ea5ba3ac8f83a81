//! Middleware: application code that surrounds each exchange with the model (a model call) and each
//! call.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use wattle_machine::{Call, Execution, FunctionTool, Message};
use wattle_model::output::OutputSchema;
use wattle_model::{FunctionChoice, ModelError, ModelReply, ModelRequest, ThinkingEffort};
use wattle_runs::Cancel;

/// Code that surrounds each [model call](super::ModelCall) and each call of a run. The first
/// middleware of an agent is the outermost.
///
/// By default, both methods call `next` with their input. The run receives and records their return
/// values.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt};
/// use wattle_agent::host::machine::{Call, Execution};
/// use wattle_agent::{Middleware, NextCall, RunState};
///
/// /// Refuses all calls after the third one in a run.
/// struct AtMostThree;
///
/// impl Middleware for AtMostThree {
///     fn call<'a>(
///         &'a self,
///         state: &'a RunState,
///         call: Call,
///         next: NextCall<'a>,
///     ) -> BoxFuture<'a, Execution> {
///         async move {
///             let count = state.of::<std::sync::atomic::AtomicU32>();
///             if count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 3 {
///                 return Execution::Refused { reason: "three calls are enough".to_owned() };
///             }
///             next.run(call).await
///         }
///         .boxed()
///     }
/// }
/// ```
pub trait Middleware: Send + Sync {
    /// Wraps one request to the model (a [model call](super::ModelCall)). A failure ends the run,
    /// unless the model rejected the request because it does not support functions.
    fn model_call<'a>(
        &'a self,
        _state: &'a RunState,
        request: ModelCallRequest,
        next: NextModelCall<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        next.run(request)
    }

    /// Wraps a call. To refuse the call, return [`Execution::Refused`] with a reason for the model.
    ///
    /// If the program has to wait for a person's approval, it is stopped, and this method is called
    /// again when the run is resumed.
    fn call<'a>(
        &'a self,
        _state: &'a RunState,
        call: Call,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Execution> {
        next.run(call)
    }
}

/// The state that the middleware and the tools of one run share.
pub struct RunState {
    pub(super) run_id: String,
    pub(super) root_run_id: String,
    pub(super) session_id: Option<String>,
    pub(super) agent: String,
    pub(super) context: Arc<Json>,
    pub(super) cancel: Cancel,
    values: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl RunState {
    pub(super) fn new(
        (run_id, root_run_id): (String, String),
        session_id: Option<String>,
        agent: String,
        (context, cancel): (Arc<Json>, Cancel),
    ) -> RunState {
        let values = Mutex::default();
        RunState { run_id, root_run_id, session_id, agent, context, cancel, values }
    }

    /// Creates the state for a program that runs without an agent, whose tools share it.
    #[must_use]
    pub fn of_program(id: impl Into<String>, cancel: Cancel) -> RunState {
        let id = id.into();
        RunState::new((id.clone(), id), None, String::new(), (Arc::default(), cancel))
    }

    /// Sets the run's value of type `T`, which [`of`](RunState::of) returns.
    pub fn set<T: Any + Send + Sync>(&self, value: Arc<T>) {
        self.set_any(TypeId::of::<T>(), value);
    }

    pub(super) fn set_any(&self, id: TypeId, value: Arc<dyn Any + Send + Sync>) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(id, value);
    }

    /// Returns the id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the id of the run at the root of the delegation tree.
    #[must_use]
    pub fn root_run_id(&self) -> &str {
        &self.root_run_id
    }

    /// Returns the label of the session, if the caller set one.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Returns the name of the agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the context that the caller passed to the run, or null. No model sees it.
    #[must_use]
    pub fn context(&self) -> &Json {
        &self.context
    }

    /// Returns the handle that cancels the run.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the run's value of type `T`. The value is created when it is first requested.
    #[must_use]
    pub fn of<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The key is the type of the value, so the downcast succeeds.
        Arc::clone(value).downcast().unwrap_or_default()
    }
}

/// The request of a model call, which middleware may change.
#[derive(Clone, Debug)]
pub struct ModelCallRequest {
    /// The conversation, starting with the system message.
    pub messages: Vec<Message>,
    /// The functions that the model may call. Empty in the text dialect.
    pub functions: Vec<FunctionTool>,
    /// The setting that allows, requires or forbids function calls.
    pub function_choice: FunctionChoice,
    /// The sampling temperature, from 0 to 2.
    pub temperature: f32,
    /// Maximum number of tokens in the answer.
    pub max_tokens: u32,
    /// The model's reasoning effort, from 0 to 100, or `None` for the model's default.
    pub thinking_effort: Option<ThinkingEffort>,
    /// The schema to which the provider constrains the answer, if the provider supports this.
    pub output: Option<OutputSchema>,
}

impl ModelCallRequest {
    pub(super) fn of(request: &ModelRequest<'_>) -> ModelCallRequest {
        ModelCallRequest {
            messages: request.messages.to_vec(),
            functions: request.functions.to_vec(),
            function_choice: request.function_choice,
            temperature: request.temperature,
            max_tokens: request.max_tokens,
            thinking_effort: request.thinking_effort,
            output: request.output.cloned(),
        }
    }

    pub(super) fn as_request(&self) -> ModelRequest<'_> {
        ModelRequest {
            messages: &self.messages,
            functions: &self.functions,
            function_choice: self.function_choice,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            thinking_effort: self.thinking_effort,
            output: self.output.as_ref(),
            timeouts: None,
        }
    }
}

/// A function that sends a request to the model.
pub(super) type AskModel<'a> =
    dyn Fn(ModelCallRequest) -> BoxFuture<'a, Result<ModelReply, ModelError>> + Send + Sync + 'a;

/// The rest of a model call: the next middleware, or the model. To send a request more than once,
/// clone this value.
#[derive(Clone, Copy)]
pub struct NextModelCall<'a> {
    pub(super) rest: &'a [Arc<dyn Middleware>],
    pub(super) state: &'a RunState,
    pub(super) model: &'a AskModel<'a>,
}

impl<'a> NextModelCall<'a> {
    /// Passes `request` to the next middleware, or to the model.
    #[must_use]
    pub fn run(self, request: ModelCallRequest) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let Some((first, rest)) = self.rest.split_first() else { return (self.model)(request) };
        let next = NextModelCall { rest, ..self };
        let model_call =
            AssertUnwindSafe(async move { first.model_call(self.state, request, next).await });
        let run = self.state.run_id();
        async move {
            model_call.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(run, "a middleware of the application panicked in a model call");
                Err(ModelError::application(PANICKED))
            })
        }
        .boxed()
    }
}

/// A function that runs a call.
pub(super) type RunCall<'a> = dyn Fn(Call) -> BoxFuture<'a, Execution> + Send + Sync + 'a;

/// The rest of a call: the next middleware, or the program.
pub struct NextCall<'a> {
    pub(super) rest: &'a [Arc<dyn Middleware>],
    pub(super) state: &'a RunState,
    pub(super) program: &'a RunCall<'a>,
}

impl<'a> NextCall<'a> {
    /// Passes `call` to the next middleware, or runs the program.
    #[must_use]
    pub fn run(self, call: Call) -> BoxFuture<'a, Execution> {
        let NextCall { rest, state, program } = self;
        let Some((first, rest)) = rest.split_first() else { return program(call) };
        let next = NextCall { rest, state, program };
        let called = AssertUnwindSafe(async move { first.call(state, call, next).await });
        async move {
            called.catch_unwind().await.unwrap_or_else(|_| {
                let run = state.run_id();
                tracing::error!(run, "a middleware of the application panicked in a call");
                Execution::Refused { reason: PANICKED.to_owned() }
            })
        }
        .boxed()
    }
}

/// The error that is reported if the application's code panics. The panic's message is written only
/// to the log.
pub(super) const PANICKED: &str = "the application failed; its log has the reason";
