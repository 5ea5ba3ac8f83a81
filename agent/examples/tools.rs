//! Gives an agent a Rust closure as a tool.
//!
//! The model calls the tool like any other program, and programs written by the model can call it,
//! too. Arguments that do not match the input schema never reach the closure.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct AddUser {
    /// The full name.
    name: String,
    /// The age in years.
    age: Option<u8>,
}

/// The result of the tool.
#[derive(Serialize)]
struct Added {
    id: usize,
}

/// A recording whose first call has an invalid age.
const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Catalog(\"add_user\", \"Ada Lovelace\", \"360\")"}
{"reply": "ToolCall::Catalog(\"add_user\", \"Ada Lovelace\", \"36\")"}
{"reply": "ToolCall::Response(\"Ada is user 1.\")"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let users = Arc::new(Mutex::new(Vec::new()));
    let table = Arc::clone(&users);
    let add_user = Tool::new("add_user", "Adds a user", move |user: AddUser, _: ToolContext| {
        let table = Arc::clone(&table);
        async move {
            let age = user.age.ok_or_else(|| ToolError::new("the age is unknown; ask for it"))?;
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            table.push((user.name, age));
            Ok(Added { id: table.len() })
        }
    });

    let agent = Agent::builder(Cassette::parse(RECORDING)?).tool(add_user).build()?;
    let report = agent.execute("Add Ada Lovelace, who is 36.").await?;
    let calls = report.model_calls.iter().flat_map(|model_call| &model_call.calls);
    let calls: Vec<(&str, bool)> = calls.map(|call| (call.name.as_str(), call.success)).collect();
    println!("{calls:?}\n{}", report.data);

    assert_eq!(calls, [("add_user", false), ("add_user", true)]);
    let users = users.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(users, [("Ada Lovelace".to_owned(), 36)]);
    Ok(())
}
