//! The MCP endpoint: clients write programs over everything that their tenant may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use wattle_agent::agents::DEFAULT_AGENT;
use wattle_agent::host::Scope;
use wattle_agent::host::capability::tool::TOOL;
use wattle_agent::host::catalog::{Catalog, Entry};
use wattle_agent::host::machine::{Call, Event};
use wattle_mcp::{CallEnd, ClientCall, Deployment, Gateway, Performing, TaskAgent, Underway};

use super::programs;
use crate::body::read_bytes;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::MessageText;
use crate::origin::RunOrigin;
use crate::route::{BUSY, FULL, Route};
use crate::start::{choose, start};
use crate::state::Shared;

/// Default maximum number of steps of a task.
const STEPS: u32 = 10;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "POST",
            "/mcp",
            Scope::Run,
            post(mcp),
            "Answers an MCP client over streamable HTTP.",
        )
        .bytes()
        .streams()
        .media("application/json", "The answer, as JSON or as a stream of events.")
        .empty(202, "The message needs no answer.")
        .empty(400, "The body is no message of the protocol, or has an unknown version of it.")
        .empty(406, "The header `Accept` lacks `application/json` or `text/event-stream`.")
        .empty(415, "The body is not JSON.")
        .errors(&[BUSY, FULL]),
    ]
}

async fn mcp(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let stop = shared.stopping.clone();
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts.clone(), body);
    let body = read_bytes(request, shared.limits.body_bytes, &shared.limits).await?;
    let request = Request::from_parts(parts, Body::from(body));
    let deployment = CallersDeployment { shared, caller };
    Ok(Gateway::new(Arc::new(deployment)).serve_http(request, stop).await.map(Body::new))
}

/// What the caller of a request may use.
struct CallersDeployment {
    shared: Arc<Shared>,
    caller: Caller,
}

impl CallersDeployment {
    async fn solve(
        &self,
        task: String,
        agent: &str,
        underway: &Underway,
    ) -> Result<CallEnd, ApiError> {
        let (shared, caller) = (&self.shared, &self.caller);
        let agent = choose(shared, caller, Some(agent), &BTreeMap::new()).await?;
        let origin = RunOrigin::of_agent(&agent, None, shared.app.steps(STEPS));
        let (request, _) = origin.request(MessageText(task), None);
        let run = start(shared, caller, request).await?;
        let mut follower = shared.service.follow(&caller.store, &run.id, 0).until_parked();
        let mut end = None;
        loop {
            let next = tokio::select! {
                biased;
                () = underway.cancel.cancelled() => {
                    let reason = "the client cancelled its request";
                    shared.service.cancel(&caller.store, &run.id, reason).await?;
                    return Ok(CallEnd::failed(reason.to_owned()));
                }
                next = follower.next() => next,
            };
            let event = next.map_err(|error| ApiError::run_goes_on(error, &run.id))?;
            let Some(event) = event else { break };
            if let Event::Parked { question, .. } = &event.event {
                return Ok(CallEnd::failed(format!(
                    "the run `{}` waits for a person to approve a call: {question}",
                    run.id
                )));
            }
            end = underway.observe(&event.event).or(end);
        }
        Ok(end.unwrap_or_else(|| CallEnd::failed("the run has no result".to_owned())))
    }
}

impl Deployment for CallersDeployment {
    fn catalog(&self) -> Catalog {
        self.shared.app.host(self.caller.store.tenant()).catalog()
    }

    fn offers(&self, entry: &Entry) -> bool {
        let uses_tool = entry.meta().uses.iter().flatten().any(|name| name == TOOL.name);
        let tenant = self.shared.app.tenant(self.caller.store.tenant());
        !uses_tool || tenant.is_ok_and(|parts| parts.tools.is_some())
    }

    fn exposed(&self) -> &[String] {
        &[]
    }

    fn call(&self, call: ClientCall, underway: Underway) -> Performing<'_> {
        Box::pin(async move {
            let call = match call {
                ClientCall::Program { program, args } => Call::Wat { body: program, args },
                // No program is a tool of its own.
                ClientCall::Catalog { name, .. } => Call::catalog(name, Vec::new()),
            };
            let performed = tokio::select! {
                biased;
                () = underway.cancel.cancelled() => {
                    return CallEnd::failed("the client cancelled its request".to_owned());
                }
                performed = programs::perform(&self.shared, &self.caller, None, call) => performed,
            };
            match performed {
                Ok(performed) => performed.end(),
                Err(error) => CallEnd::failed(error.sentence()),
            }
        })
    }

    fn check(&self, program: String) -> Performing<'_> {
        let host = self.shared.app.host(self.caller.store.tenant());
        Box::pin(async move { wattle_mcp::check(&program, &host).await })
    }

    fn agents(&self) -> Vec<TaskAgent> {
        TaskAgent::among(self.shared.app.agents())
    }

    fn task(&self, task: String, agent: Option<String>, underway: Underway) -> Performing<'_> {
        Box::pin(async move {
            let agent = agent.as_deref().unwrap_or(DEFAULT_AGENT);
            let solved = self.solve(task, agent, &underway).await;
            solved.unwrap_or_else(|error| CallEnd::failed(error.sentence()))
        })
    }

    fn page(&self, name: &str) -> Option<String> {
        wattle_mcp::page(name, &self.shared.app.host(self.caller.store.tenant()))
    }
}
