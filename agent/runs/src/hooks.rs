//! The hooks through which an application takes part in a run.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use wattle_machine::{Call, Envelope, Execution, Message, Usage};
use wattle_model::{Delta, FunctionChoice, Model, ModelError, ModelReply, ModelRequest, Timeouts};

use crate::delegates::{ChildEnd, ChildError, ChildRequest};
use crate::error::HostError;

/// A function that executes a call.
pub type Perform<'a> =
    dyn Fn(Call) -> BoxFuture<'a, Result<Execution, HostError>> + Send + Sync + 'a;

/// The functions through which an application takes part in a run of the
/// [run service](crate::service). The driver calls them around requests to the model and around
/// calls.
pub trait RunHooks: Send + Sync {
    /// Handles an event when it is emitted. The run waits for this method, so it must not block.
    fn event(&self, event: &Envelope);

    /// Handles the start of a child run, before its parts are assembled.
    fn child_started(&self, child: &ChildRequest);

    /// Handles the end of the child run `id` in this process. Its program receives the end once
    /// this method has returned.
    fn child_ended<'a>(
        &'a self,
        id: &'a str,
        end: &'a Result<ChildEnd, ChildError>,
    ) -> BoxFuture<'a, ()>;

    /// Waits until the next request to the model may be sent.
    fn before_ask(&self) -> BoxFuture<'_, ()>;

    /// Returns the function choice for the next request, or `None` for that of the settings.
    fn tool_call(&self) -> Option<FunctionChoice>;

    /// Returns the messages of the next request, or `None` to send `messages`.
    fn messages(&self, messages: &[Message]) -> Option<Vec<Message>>;

    /// Handles the start of a request to the model.
    fn request_started(&self);

    /// Sends a request to the model within `timeouts`.
    fn ask<'a>(
        &'a self,
        model: &'a dyn Model,
        timeouts: &'a Timeouts,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;

    /// Handles the end of a request that started at `started`. The usage includes the cost. The
    /// error is the reason why there is no reply.
    fn request_ended(&self, started: Instant, usage: Usage, answer: Result<&ModelReply, String>);

    /// Returns the results of calls that the application ran itself, or `None` if the run must
    /// execute the calls.
    fn before_calls<'a>(
        &'a self,
        step: u32,
        calls: &'a [Call],
    ) -> BoxFuture<'a, Option<Vec<Execution>>>;

    /// Runs a call, for which `perform` executes the program. The returned flag is true if the call
    /// or its outcome was changed. Returns `None` if the driver must run the call itself.
    fn perform<'a>(
        &'a self,
        call: &'a Call,
        perform: &'a Perform<'a>,
    ) -> Option<BoxFuture<'a, Result<(Execution, bool), HostError>>>;
}

/// A guard that reports the end of a request to the model. If it is dropped before
/// [`end`](RequestGuard::end) is called, the request is reported as stopped.
pub(crate) struct RequestGuard {
    hooks: Option<Arc<dyn RunHooks>>,
    started: Instant,
}

impl RequestGuard {
    /// Reports the start of a request.
    pub(crate) fn begin(hooks: Option<&Arc<dyn RunHooks>>) -> RequestGuard {
        let hooks = hooks.cloned();
        if let Some(hooks) = &hooks {
            hooks.request_started();
        }
        RequestGuard { hooks, started: Instant::now() }
    }

    /// Reports the end of the request. The usage must include the cost.
    pub(crate) fn end(mut self, answer: Result<(&ModelReply, Usage), &ModelError>) {
        let Some(hooks) = self.hooks.take() else { return };
        match answer {
            Ok((reply, usage)) => hooks.request_ended(self.started, usage, Ok(reply)),
            Err(error) => {
                hooks.request_ended(self.started, Usage::default(), Err(error.to_string()));
            }
        }
    }
}

/// Reports an unfinished request as stopped.
impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Some(hooks) = self.hooks.take() {
            let stopped = "the run ended before the model answered".to_owned();
            hooks.request_ended(self.started, Usage::default(), Err(stopped));
        }
    }
}
