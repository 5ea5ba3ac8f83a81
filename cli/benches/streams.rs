//! Measures event streams: 500 clients follow 50 runs of a real server, whose model answers
//! immediately. Checks that no event is lost or duplicated, and prints the event latency and the
//! memory usage of an idle stream. Prints both again with 50 additional clients that never read.
//! Also prints the time from the model's first word to the first visible piece of its answer.
//!
//! Run it with `cargo bench --bench streams`. With `-- --test`, it runs one small round.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench that cannot go on has failed"
)]

mod serve;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider, Recorded};

use serve::Server;

/// Number of steps per run before the answer.
const STEPS: usize = 5;

/// The number of runs and clients in a round.
#[derive(Clone, Copy)]
struct Size {
    runs: usize,
    clients: usize,
    /// Number of clients that never read.
    idle: usize,
}

/// Reads a stream until its last event. Returns the latency of each recorded event, in
/// milliseconds.
fn follow(stream: &mut BufReader<TcpStream>) -> Vec<u64> {
    let (mut delays, mut newest) = (Vec::new(), 0);
    let mut line = String::new();
    while {
        line.clear();
        stream.read_line(&mut line).unwrap() > 0
    } {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        let event: Json = serde_json::from_str(data).unwrap();
        let kind = event["type"].as_str().unwrap();
        if ["delta", "thought_delta", "answer_delta", "answer_void"].contains(&kind) {
            continue;
        }
        newest += 1;
        assert_eq!(event["seq"], newest, "an event is lost or doubled: {event}");
        delays.push(now.saturating_sub(event["ts"].as_u64().unwrap()));
        if event["type"] == "response" {
            return delays;
        }
    }
    panic!("the stream broke off");
}

/// Runs a round and prints its results.
fn round(size: Size) {
    let go = Arc::new(AtomicBool::new(false));
    let ready = Arc::clone(&go);
    let provider = Provider::answering(move |request: &Recorded| {
        while !ready.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let steps = request.body.matches("[Observation (step ").count();
        // The prompt itself contains this string once.
        if steps > STEPS {
            return Answer::text("ToolCall::Response(\"done\")");
        }
        Answer::text(format!("ToolCall::Wat(```wat\n(out (+ {steps} 1))\n```)"))
    });
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&provider.base_url(), home.path(), &[]);
    let runs: Vec<String> = (0..size.runs)
        .map(|number| {
            let mut answer =
                server.send("POST /api/run", &format!("{{\"prompt\":\"run {number}\"}}"));
            let mut text = String::new();
            std::io::Read::read_to_string(&mut answer, &mut text).unwrap();
            let body: Json = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
            body["id"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned()
        })
        .collect();
    // Wait until all runs are waiting for the model.
    while provider.requests().len() < size.runs {
        std::thread::sleep(Duration::from_millis(5));
    }
    let open = |count: usize| -> Vec<BufReader<TcpStream>> {
        let streams = (0..count).map(|at| {
            let run = &runs[at % runs.len()];
            let mut stream = server.send(&format!("GET /api/run/{run}/stream"), "");
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            assert!(line.starts_with("HTTP/1.1 200"), "{line}");
            stream
        });
        streams.collect()
    };
    let before = server.memory();
    let streams = open(size.clients);
    let per_stream = server.memory().saturating_sub(before) as f64 / size.clients as f64;
    let _idle = open(size.idle);
    let barrier = Arc::new(Barrier::new(size.clients + 1));
    let clients: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                follow(&mut stream)
            })
        })
        .collect();
    barrier.wait();
    let started = Instant::now();
    go.store(true, Ordering::Relaxed);
    let mut delays: Vec<u64> =
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let elapsed = started.elapsed();
    delays.sort_unstable();
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    println!(
        "{} clients, {} runs, {} clients that never read: {} events in {:.2} s; delay p50 {} ms, \
         p99 {} ms; {per_stream:.1} KiB per idle stream",
        size.clients,
        size.runs,
        size.idle,
        delays.len(),
        elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
    );
}

/// Time between two pieces of the answer of a model that writes slowly.
const PAUSE: Duration = Duration::from_millis(10);

/// Prints the median time from the first word of an answer to its first visible piece, for several
/// ways to follow a run.
fn first_pieces(times: usize) {
    let began = Arc::new(Mutex::new(Instant::now()));
    let own = Arc::clone(&began);
    let provider = Provider::answering(move |_: &Recorded| {
        *own.lock().unwrap() = Instant::now() + PAUSE;
        let words = (0..100).map(|number| format!("word{number} ")).collect::<String>();
        Answer::streamed(format!("ToolCall::Response(\"\"\"{words}\"\"\")"))
            .pieces(128)
            .pause(PAUSE)
    });
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&provider.base_url(), home.path(), &[]);
    let streamed = |line: &str, body: &str, first: &str| {
        let mut stream = server.send(line, body);
        let mut line = String::new();
        while !line.contains(first) {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has no answer");
        }
        began.lock().unwrap().elapsed()
    };
    let completion =
        r#"{"model":"wattle","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let message = r#"{"message":"go"}"#;
    let terminal = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wattle"));
        command.args(["run", "--model", "m", "--base-url", &provider.base_url(), "go"]);
        command.current_dir(home.path()).env("HOME", home.path()).env("TERM", "xterm-256color");
        let mut shown = rexpect::session::spawn_command(command, Some(60_000)).unwrap();
        shown.exp_string("word0").unwrap();
        let elapsed = began.lock().unwrap().elapsed();
        shown.exp_eof().unwrap();
        elapsed
    };
    let ways: [(&str, &dyn Fn() -> Duration); 4] = [
        ("events", &|| streamed("POST /chat", message, "\"answer_delta\"")),
        ("chunks", &|| streamed("POST /chat?view=chunks", message, "\"chunk\"")),
        ("/v1", &|| streamed("POST /v1/chat/completions", completion, "\"content\":\"word0")),
        ("terminal", &terminal),
    ];
    for (name, first) in ways {
        let mut all: Vec<Duration> = (0..times).map(|_| first()).collect();
        all.sort_unstable();
        let median = all[all.len() / 2].as_secs_f64() * 1e3;
        println!("the first piece of an answer after its first word, {name}: {median:.1} ms");
    }
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    first_pieces(if is_test { 1 } else { 21 });
    let sizes = if is_test {
        vec![Size { runs: 4, clients: 20, idle: 2 }]
    } else {
        vec![Size { runs: 50, clients: 500, idle: 0 }, Size { runs: 50, clients: 500, idle: 50 }]
    };
    sizes.into_iter().for_each(round);
}
