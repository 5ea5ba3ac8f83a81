//! Gets the answer of a run as a value of a Rust type.
//!
//! The schema of the type is sent with the task. The recorded model first gives an answer that does
//! not match it. The run reports the fault to the model, which then corrects its answer.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::capability::files::Files;
use wattle_agent::machine::{Envelope, Event};
use wattle_agent::model::Cassette;
use wattle_agent::output::{OutputSchema, OutputSettings};
use wattle_agent::{Access, Host, Job, Settings};

/// A city with its population.
#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct City {
    /// The name in English.
    name: String,
    /// The number of inhabitants.
    population: u32,
}

/// The population of the first answer is not a number.
const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "{\"name\": \"Oslo\", \"population\": \"many\"}"}
{"reply": "{\"name\": \"Oslo\", \"population\": 724290}"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::built_in()?;
    let model = Cassette::parse(RECORDING)?;
    let access = Access::new(&host, Arc::new(Files::overlay(None, 1 << 20)));
    let output = OutputSettings::new(OutputSchema::of::<City>()?);
    let job =
        Job { output: Some(output), ..Job::new("What is the capital of Norway?", access.grants()) };

    let faults = Mutex::new(Vec::new());
    let sink = |envelope: &Envelope| {
        if let Event::Retry { error, .. } = &envelope.event {
            println!("asked again: {error}");
            faults.lock().unwrap_or_else(PoisonError::into_inner).push(error.clone());
        }
    };
    let report = wattle_agent::run(&host, &model, &Settings::default(), job, &sink).await;
    let city: City = report.parse()?;
    println!("{city:?}");

    assert_eq!(city, City { name: "Oslo".to_owned(), population: 724_290 });
    let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(matches!(&faults[..], [fault] if fault.contains("/population")), "{faults:?}");
    Ok(())
}
