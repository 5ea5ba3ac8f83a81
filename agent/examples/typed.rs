//! Parses the answer of a run into a Rust type.
//!
//! The schema of the type is sent with the task. The first recorded answer does not match the
//! schema. The run reports the error to the model, which then corrects its answer.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

/// A city with its population.
#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct City {
    /// The name in English.
    name: String,
    /// The number of inhabitants.
    population: u32,
}

/// A recording whose first answer contains a population that is not a number.
const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "{\"name\": \"Oslo\", \"population\": \"many\"}"}
{"reply": "{\"name\": \"Oslo\", \"population\": 724290}"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(Cassette::parse(RECORDING)?).output::<City>().build()?;
    let retries = |event: &RunEvent| {
        if let RunEventKind::Retry { error, .. } = &event.kind {
            println!("asked again: {error}");
        }
    };
    let report = agent.execute("What is the capital of Norway?").on(retries).await?;
    println!("{:?}", report.data);

    assert_eq!(report.data, City { name: "Oslo".to_owned(), population: 724_290 });
    assert_eq!(report.model_calls.len(), 2);
    Ok(())
}
