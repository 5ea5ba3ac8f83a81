//! Serves an agent with axum: one route returns a run's report, and another streams a run's events.
//!
//! If a client disconnects, its run ends: dropping the future or the stream of a run cancels it.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::convert::Infallible;
use std::error::Error;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Response(\"four\")"}
{"reply": "ToolCall::Response(\"still four\")"}
"#;

/// Runs the agent on the input and returns the run's report.
async fn run(
    State(agent): State<Agent>,
    input: String,
) -> Result<Json<RunReport<String>>, (StatusCode, String)> {
    let report = agent.execute(input).await;
    report.map(Json).map_err(|failure| (StatusCode::BAD_GATEWAY, failure.to_string()))
}

/// Streams the events of the run, and the model's answers as the model writes them.
async fn events(
    State(agent): State<Agent>,
    input: String,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let event = |item: StreamItem| {
        Ok(Event::default().json_data(item).unwrap_or_else(|_| Event::default()))
    };
    Sse::new(agent.stream(input).map(event))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(Cassette::parse(RECORDING)?).build()?;
    let routes =
        Router::new().route("/run", post(run)).route("/events", post(events)).with_state(agent);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, routes).await });

    let ask = async |path: &str| -> Result<String, Box<dyn Error>> {
        let mut client = TcpStream::connect(address).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: text/plain\r\ncontent-length: 12\r\n\r\n"
        );
        client.write_all(format!("{head}two and two?").as_bytes()).await?;
        let mut response = String::new();
        client.read_to_string(&mut response).await?;
        Ok(response)
    };
    let report = ask("/run").await?;
    let events = ask("/events").await?;
    println!("{report}\n{events}");
    server.abort();

    assert!(report.contains("\"status\":\"completed\"") && report.contains("\"data\":\"four\""));
    for part in ["\"type\":\"run_started\"", "\"delta\":", "\"type\":\"run_ended\"", "still four"] {
        assert!(events.contains(part), "{part}");
    }
    Ok(())
}
