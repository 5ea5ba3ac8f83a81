//! Tests of a client that follows a run while its server is killed and restarted.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider, Recorded};

use super::Served;

/// Sends a request and returns a reader of the response.
fn send(
    served: &Served,
    token: &str,
    line: &str,
    headers: &str,
    body: &str,
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let (address, length) = (&served.address, body.len());
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: \
         {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads the next event of a stream, with its id if the event is recorded. Returns `None` at the
/// end of the stream.
fn event(stream: &mut BufReader<TcpStream>) -> Option<(Option<u64>, Json)> {
    let mut id = None;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(number) = line.strip_prefix("id: ") {
            id = Some(number.trim().parse().unwrap());
        } else if let Some(data) = line.strip_prefix("data: ") {
            return Some((id, serde_json::from_str(data).unwrap()));
        }
    }
}

#[test]
fn a_run_goes_on_after_its_client_and_its_server_were_killed_and_no_event_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let asked = AtomicUsize::new(0);
    let provider = Provider::answering(move |_: &Recorded| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::text("ToolCall::Wat(```wat\n(out (+ 1 2))\n```)"),
            // The server is killed while it waits for this answer.
            1 => Answer::hang(),
            _ => Answer::text("ToolCall::Response(\"three\")"),
        }
    });
    let mut served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    let mut answer = send(&served, &token, "POST /api/run", "", r#"{"prompt":"add"}"#);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut answer, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 202 "), "{text}");
    let started: Json = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let route = format!("GET /api/run/{}/stream", started["id"].as_str().unwrap());

    let mut events = Vec::new();
    let mut stream = send(&served, &token, &route, "", "");
    while events.last().is_none_or(|(_, last): &(Option<u64>, Json)| last["type"] != "tool_result")
    {
        events.push(event(&mut stream).unwrap());
    }
    while provider.requests().len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    while let Some(more) = event(&mut stream) {
        events.push(more);
    }

    let served = Served::start(home.path(), &provider);
    let last = events.iter().rev().find_map(|(id, _)| *id).unwrap();
    let mut stream = send(&served, &token, &route, &format!("Last-Event-ID: {last}\r\n"), "");
    while let Some(more) = event(&mut stream) {
        events.push(more);
    }
    let kept: Vec<u64> = events.iter().filter_map(|(id, _)| *id).collect();
    assert_eq!(kept, (1..=kept.len() as u64).collect::<Vec<_>>(), "{events:?}");
    let kinds: Vec<&str> = events
        .iter()
        .filter(|(id, _)| id.is_some())
        .map(|(_, event)| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_start", "tool_result", "response"]);
    assert_eq!(events.last().unwrap().1["text"], "three");
    served.stop();
}
