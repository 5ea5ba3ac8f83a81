//! The baseline: the model solves the same tasks by calling host functions one by one, as JSON
//! tools.
//!
//! The baseline has the same grants, limits and costs as the programs that it is compared with,
//! because every call runs in the sandbox as a program with one call. The baseline has its own
//! small loop, which shares no code with the agent's loop.

mod call;
mod tool;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_agent::host::machine::{Bound, Ending, FunctionCall, Message};
use wattle_agent::host::rt::Grants;
use wattle_agent::model::{Delta, FunctionTool, Model, ModelReply, ModelRequest, ask_within};
use wattle_agent::{Host, Settings};

use crate::tally::Count;
use crate::trial::Run;
use tool::Toolbox;

/// The system prompt.
const SYSTEM: &str = "You carry out the user's task by calling tools. Each tool is one function \
                      of the host; it sees only its arguments, the working directory's files, the \
                      session's state, and the network where the task needs it. Paths are \
                      relative to the working directory. Array and map arguments are JSON arrays \
                      and objects of strings; a tool that changes one returns it. When the task \
                      is done, answer with the result only, without calling a tool.";

/// The message that requests an answer when all steps are used up.
const CONCLUDE: &str =
    "All steps are used up. Answer now with what you know; no more tools can be called.";

/// Runs a task with tools until it ends. The counterpart for programs is
/// [`wattle_agent::host::run`].
pub(crate) async fn run(
    host: &Host,
    settings: &Settings,
    model: &dyn Model,
    prompt: &str,
    grants: Grants,
    cancel: &CancellationToken,
) -> Run {
    let mut conversation = Conversation::new(host, settings, model, prompt, grants);
    let time = settings.timeout.unwrap_or(std::time::Duration::MAX);
    let ending = tokio::select! {
        biased;
        () = cancel.cancelled() => Ending::Cancelled { text: "stopped: cancelled".to_owned() },
        () = tokio::time::sleep(time) => {
            let text = format!("stopped: reached timeout ({} ms)", time.as_millis());
            Ending::Exhausted { text, bound: Bound::Time, data: None }
        }
        ending = conversation.run() => ending,
    };
    Run { ending, steps: conversation.steps, count: conversation.count }
}

/// Returns the system prompt and the schemas of the tools.
pub(crate) fn instructions(host: &Host, grants: &Grants) -> (&'static str, Vec<FunctionTool>) {
    (SYSTEM, Toolbox::new(host.runtime(), grants).schemas().to_vec())
}

/// The conversation of one run.
struct Conversation<'a> {
    host: &'a Host,
    settings: &'a Settings,
    model: &'a dyn Model,
    grants: Arc<Grants>,
    tools: Toolbox,
    messages: Vec<Message>,
    steps: u32,
    count: Count,
}

impl<'a> Conversation<'a> {
    fn new(
        host: &'a Host,
        settings: &'a Settings,
        model: &'a dyn Model,
        prompt: &str,
        grants: Grants,
    ) -> Self {
        let tools = Toolbox::new(host.runtime(), &grants);
        let messages = vec![Message::system(SYSTEM), Message::user(prompt)];
        let (grants, count) = (Arc::new(grants), Count::default());
        Conversation { host, settings, model, grants, tools, messages, steps: 0, count }
    }

    /// Asks the model and makes the calls that it requests, until the model answers or its steps
    /// are used up.
    async fn run(&mut self) -> Ending {
        while self.steps < self.settings.machine.max_steps {
            let reply = match self.ask(true).await {
                Ok(reply) => reply,
                Err(ending) => return ending,
            };
            if reply.calls.is_empty() {
                return Ending::Answered { text: reply.text.trim().to_owned(), data: None };
            }
            self.steps += 1;
            self.messages.push(Message::calling(reply.text, reply.calls.clone()));
            for call in reply.calls {
                match self.call(&call).await {
                    Ok(result) => self.messages.push(Message::tool(call.id, result)),
                    Err(ending) => return ending,
                }
            }
        }
        self.messages.push(Message::user(CONCLUDE));
        match self.ask(false).await {
            Ok(reply) => Ending::Exhausted {
                text: reply.text.trim().to_owned(),
                bound: Bound::Steps,
                data: None,
            },
            Err(ending) => ending,
        }
    }

    async fn ask(&self, with_tools: bool) -> Result<ModelReply, Ending> {
        let request = ModelRequest {
            functions: if with_tools { self.tools.schemas() } else { &[] },
            temperature: self.settings.temperature,
            max_tokens: self.settings.max_tokens,
            thinking_effort: self.settings.thinking_effort,
            ..ModelRequest::new(&self.messages)
        };
        ask_within(self.model, &self.settings.timeouts, request, &mut |_: Delta<'_>| {})
            .await
            .map_err(|error| Ending::Failed { message: format!("error: {error}") })
    }

    /// Makes a call and returns its result, truncated like an observation.
    async fn call(&mut self, call: &FunctionCall) -> Result<String, Ending> {
        self.count.programs += 1;
        let result = match self.tools.program(&call.name, &call.arguments) {
            Err(why) => format!("error: {why}"),
            Ok(program) => {
                self.count.valid += 1;
                let result = program.run(self.host.runtime(), &self.grants).await;
                result.map_err(|broken| Ending::Failed { message: format!("error: {broken}") })?
            }
        };
        self.count.failures += u32::from(result.starts_with("error: "));
        Ok(truncated(result, self.settings.machine.observation_limit))
    }
}

/// Truncates a string and appends the number of omitted characters.
fn truncated(text: String, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text,
        Some((at, _)) => {
            let omitted = text.chars().count() - limit;
            let kept = text.split_at(at).0;
            format!("{kept}\n[… {omitted} more characters; ask for a part of it …]")
        }
    }
}
