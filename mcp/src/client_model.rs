//! The model of a run that an MCP client started: it makes the client's one call, and answers with its
//! result.
//!
//! So a client's program is a run like any other: under the same policy, with approvals, a record, a
//! trace and a replay.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use wattle_agent::host::machine::{FunctionCall, Role};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};

/// The id of the call.
const ID: &str = "call";

/// What a client asks for. The message of the run is its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "call")]
pub enum ClientCall {
    /// A program that the client wrote.
    Program {
        /// The program's source.
        program: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
    },
    /// A catalog program.
    Catalog {
        /// The program's name.
        name: String,
        /// Its arguments by name.
        arguments: Map<String, Json>,
    },
}

impl ClientCall {
    /// Returns the message of the run: the call in JSON.
    #[must_use]
    pub fn message(&self) -> String {
        json!(self).to_string()
    }

    fn function(&self) -> (&'static str, Json) {
        match self {
            ClientCall::Program { program, args } => {
                ("wat", json!({ "body": program, "args": args }))
            }
            ClientCall::Catalog { name, arguments } => {
                ("catalog", json!({ "name": name, "arguments": arguments }))
            }
        }
    }
}

/// The model that makes a client's call.
pub struct ClientModel;

impl Model for ClientModel {
    fn name(&self) -> &str {
        "mcp-client"
    }

    fn takes_functions(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let is_called = request.messages.iter().any(|message| message.answers.is_some());
        let first = request.messages.iter().find(|message| message.role == Role::User);
        // The host may add lines after the call.
        let call = first.and_then(|message| {
            serde_json::Deserializer::from_str(&message.content).into_iter().next()?.ok()
        });
        let (name, arguments) = match call.filter(|_| !is_called) {
            Some(call) => ClientCall::function(&call),
            None => ("done", json!({ "result": "done" })),
        };
        let call = FunctionCall {
            id: ID.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string().into(),
        };
        let reply = ModelReply { calls: vec![call], ..ModelReply::default() };
        async move { Ok(reply) }.boxed()
    }
}
