//! Tests of a server under a load of hostile programs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use wattle_tests::provider::{Answer, Provider};

use super::Served;

/// Maximum time for one response from `/healthz`. An idle server responds much faster.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns programs that are expensive to parse, to check or to compile.
fn hostile_programs() -> Vec<String> {
    let statements = "(kv.set? \"k\" \"v\")\n".repeat(20_000);
    let nested =
        format!("(ret (str.from_int {}1{}))", "(i32.add 1 ".repeat(20_000), ")".repeat(20_000));
    let unknown = "(str.form_int (local.get $nothing))\n".repeat(20_000);
    let sum = format!("(ret (str.from_int {}1{}))", "(i32.add 1 ".repeat(400), ")".repeat(400));
    vec![statements, nested, unknown, sum]
}

fn health(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn healthz_answers_while_hostile_programs_compile() {
    let home = tempfile::tempdir().unwrap();
    let programs = hostile_programs();
    let count = programs.len();
    let provider = Provider::answering(move |request| {
        let number = (0..count).find(|number| request.body.contains(&format!("program-{number}")));
        match number.filter(|_| request.messages().len() <= 2) {
            Some(number) => {
                Answer::text(format!("ToolCall::Wat(```wat\n{}\n```)", programs[number]))
            }
            None => Answer::text("ToolCall::Response(\"done\")"),
        }
    });
    let served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    let mut during = 0;
    std::thread::scope(|scope| {
        let (served, token) = (&served, &token);
        let chats: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    served.ask(token, &format!(r#"{{"message":"program-{number}"}}"#))
                })
            })
            .collect();
        while !chats.iter().all(|chat| chat.is_finished()) {
            let start = Instant::now();
            assert!(health(&served.address).contains("\"status\":\"ok\""));
            assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
            if !provider.requests().is_empty() && chats.iter().any(|chat| !chat.is_finished()) {
                during += 1;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        for chat in chats {
            let answer = chat.join().unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    });
    assert!(during > 0, "no request was answered while the programs compiled");
    served.stop();
}
