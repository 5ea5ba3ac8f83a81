//! Tests of agents in an application: runs, reports, events, tools, middleware, delegates and
//! streams.

mod agents;
mod budgets;
mod cancelling;
mod conversation;
mod delegates;
mod events;
mod journal;
mod manual;
mod middleware;
mod reports;
mod runner;
mod streams;
mod tools;

use std::sync::{Arc, LazyLock, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_agent::host::machine::{FunctionCall, Usage};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::prelude::*;

/// The host that all tests share.
static HOST: LazyLock<Host> = LazyLock::new(|| Host::built_in().unwrap());

/// Returns a builder for an agent on the shared host. Its model returns these answers in order.
fn agent(answers: &[&str]) -> AgentBuilder {
    Agent::builder(Script::new(answers)).host(HOST.clone())
}

/// Returns a model's answer that calls a catalog program.
fn call(program: &str, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| format!(", {arg:?}")).collect();
    format!("ToolCall::Catalog(\"{program}\"{})", args.concat())
}

/// Returns a model's answer that ends the run.
fn say(text: &str) -> String {
    format!("ToolCall::Response({text:?})")
}

/// A model that returns its answers in order. The last one is repeated.
#[derive(Clone)]
struct Script(Arc<ScriptState>);

struct ScriptState {
    answers: Vec<ModelReply>,
    is_native: bool,
    /// The last message of each request.
    requests: Mutex<Vec<String>>,
}

impl Script {
    fn new(answers: &[&str]) -> Script {
        let reply = |text: &&str| ModelReply {
            text: (*text).to_owned(),
            usage: Usage { prompt: 10, completion: 5, ..Usage::default() },
            finish: Some("stop".to_owned()),
            ..ModelReply::default()
        };
        Script::of(answers.iter().map(reply).collect(), false)
    }

    /// Creates a model with function calling. Each answer is a function's name with its arguments,
    /// or an empty name with plain text.
    fn native(answers: &[(&str, &str)]) -> Script {
        let reply = |(at, (name, text)): (usize, &(&str, &str))| {
            let call = FunctionCall {
                id: format!("c{at}"),
                name: (*name).to_owned(),
                arguments: (*text).into(),
            };
            if name.is_empty() {
                ModelReply { text: (*text).to_owned(), ..ModelReply::default() }
            } else {
                ModelReply { calls: vec![call], ..ModelReply::default() }
            }
        };
        Script::of(answers.iter().enumerate().map(reply).collect(), true)
    }

    fn of(answers: Vec<ModelReply>, is_native: bool) -> Script {
        Script(Arc::new(ScriptState { answers, is_native, requests: Mutex::default() }))
    }

    /// Returns the last message of each request so far.
    fn requests(&self) -> Vec<String> {
        self.0.requests.lock().unwrap().clone()
    }
}

impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn takes_functions(&self) -> bool {
        self.0.is_native
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let mut requests = self.0.requests.lock().unwrap();
        let answer = requests.len().min(self.0.answers.len() - 1);
        requests.push(request.messages.last().unwrap().content.to_string());
        let answer = self.0.answers[answer].clone();
        async move { Ok(answer) }.boxed()
    }
}

/// A model that never answers. It sends a notification for each request.
#[derive(Clone, Default)]
struct Silent(Arc<tokio::sync::Notify>);

impl Model for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.0.notify_one();
        std::future::pending().boxed()
    }
}

/// A list that handlers, tools and middleware write to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Returns a handler that adds the name of each event to the log, preceded by `prefix`.
    fn handler(&self, prefix: &str) -> impl Handler + use<> {
        let (log, prefix) = (self.clone(), prefix.to_owned());
        move |event: &RunEvent| log.add(format!("{prefix}{}", name(event)))
    }
}

/// Returns the type of an event, as in its JSON form.
fn name(event: &RunEvent) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}
