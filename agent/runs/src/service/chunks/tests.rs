//! Tests of `Chunks` with model outputs that are split into pieces of every possible size.

use super::*;

fn event(seq: u64, event: Event) -> Envelope {
    Envelope { run_id: "r".to_owned(), root_run_id: "r".to_owned(), seq, ts: 0, event }
}

fn delta(text: &str) -> Envelope {
    event(1, Event::Delta { step: 1, text: text.to_owned() })
}

fn response(text: &str) -> Envelope {
    let (text, usage, stop) = (text.to_owned(), Usage::default(), Stop::Answered);
    event(2, Event::Response { text, session_id: None, steps: 0, usage, stop, data: None })
}

/// A client that receives the chunks of an answer.
#[derive(Default)]
struct Client {
    answer: String,
    restarts: u32,
    done: Option<String>,
}

impl Client {
    fn receive(&mut self, chunks: Vec<ChunkEvent>) {
        for ChunkEvent { chunk, .. } in chunks {
            match chunk {
                Chunk::Chunk { offset, content } => {
                    if offset == 0 {
                        self.restarts += u32::from(!self.answer.is_empty());
                        self.answer.clear();
                    }
                    assert_eq!(self.answer.chars().count() as u64, offset);
                    self.answer.push_str(&content);
                }
                Chunk::Done { text, .. } => self.done = Some(text),
                _ => {}
            }
        }
    }
}

/// Passes a model's output to a client in pieces of at most `size` characters.
fn receive(text: &str, size: usize, answer: &str) -> Client {
    let (mut view, mut client) = (Chunks::default(), Client::default());
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(size) {
        client.receive(view.next(&delta(&piece.iter().collect::<String>())));
    }
    client.receive(view.next(&event(1, Event::Thinking { step: 1, content: "x".to_owned() })));
    client.receive(view.next(&response(answer)));
    client
}

#[test]
fn the_pieces_of_an_answer_are_the_answer() {
    for (text, answer) in [
        (
            "ToolCall::Response(\"\"\"\nFour – 4.\n\nSure \"\" of it.\n\"\"\")",
            "Four – 4.\n\nSure \"\" of it.",
        ),
        ("<reasoning>a < b\"\"\"</reasoning>\n ToolCall::Response( \"\"\"yes\"\"\") more", "yes"),
        (
            "<think>ToolCall::Response(\"\"\"no\"\"\")</think>Plain text, and Tool\nwords.",
            "Plain text, and Tool\nwords.",
        ),
        ("Four", "Four"),
        ("ToolCall::Response(\"simple\")", "simple"),
        ("<b>Bold</b>", "<b>Bold</b>"),
    ] {
        for size in 1..=text.len() {
            let client = receive(text, size, answer);
            assert_eq!((client.answer.as_str(), client.restarts), (answer, 0), "{text} by {size}");
            assert_eq!(client.done.as_deref(), Some(answer));
        }
    }
}

#[test]
fn an_answer_that_differs_from_what_was_received_begins_anew() {
    for (text, answer) in [
        ("I look first.\nToolCall::Response(\"\"\"yes\"\"\")", "yes"),
        ("ToolCall::Response(\"\"\"half", "stopped: cancelled"),
        ("some text", ""),
    ] {
        for size in 1..=text.len() {
            let client = receive(text, size, answer);
            assert_eq!(client.answer, answer, "{text} by {size}");
            assert_eq!(client.done.as_deref(), Some(answer));
        }
    }
}

#[test]
fn a_call_or_a_retry_makes_the_text_before_it_void() {
    let mut view = Chunks::default();
    let retry = |seq| {
        let error = "again".to_owned();
        event(seq, Event::Retry { step: 1, attempt: 1, error })
    };
    let offsets = |chunks: Vec<ChunkEvent>| -> Vec<u64> {
        let offset = |one: ChunkEvent| match one.chunk {
            Chunk::Chunk { offset, .. } => Some(offset),
            _ => None,
        };
        chunks.into_iter().filter_map(offset).collect()
    };
    assert_eq!(offsets(view.next(&delta("one"))), [0]);
    assert_eq!(offsets(view.next(&delta("two"))), [3]);
    let chunks = view.next(&retry(1));
    let error = Chunk::Error { message: "again".to_owned(), fatal: false };
    assert_eq!(chunks[0].chunk, error);
    assert_eq!(offsets(view.next(&delta("one"))), [0]);
    let (label, body) = ("wat".to_owned(), Some("(ret 1)".to_owned()));
    let start = Event::ToolStart {
        step: 1,
        call: 1,
        label,
        source: wattle_machine::Source::Wat,
        description: String::new(),
        body,
        args: vec!["a".to_owned()],
    };
    let expected = Chunk::ToolCall {
        call: "1.1".to_owned(),
        name: "wat".to_owned(),
        arguments: vec!["a".to_owned()],
        program: Some("(ret 1)".to_owned()),
        question: None,
    };
    assert_eq!(view.next(&event(2, start))[0].chunk, expected);
    let parked = Event::Parked { call: "1.1".to_owned(), question: "may it?".to_owned() };
    let parked = view.next(&event(3, parked)).remove(0);
    let json = serde_json::to_value(&parked).unwrap();
    let expected = serde_json::json!({
        "run_id": "r", "root_run_id": "r", "seq": 3, "ts": 0, "type": "tool_call", "call": "1.1",
        "name": "wat", "arguments": [], "question": "may it?",
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<ChunkEvent>(json).unwrap(), parked);
    assert_eq!(offsets(view.next(&delta("new"))), [0]);
}

#[test]
fn a_failed_run_has_an_error_and_then_done() {
    let chunks = Chunks::default().next(&event(1, Event::Error { message: "error: x".to_owned() }));
    let kinds: Vec<serde_json::Value> =
        chunks.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    assert_eq!((&kinds[0]["type"], &kinds[0]["fatal"]), (&"error".into(), &true.into()));
    assert_eq!((&kinds[1]["type"], &kinds[1]["stop"]), (&"done".into(), &Json::Null));
}

#[test]
fn a_long_answer_is_sent_when_it_is_complete() {
    let mut view = Chunks::default();
    let half = "x".repeat(MAX_DRAFT / 2 + 1);
    let (mut client, whole) = (Client::default(), half.repeat(2));
    client.receive(view.next(&delta(&half)));
    assert!(view.next(&delta(&half)).is_empty());
    client.receive(view.next(&response(&whole)));
    assert_eq!((client.answer == whole, client.restarts), (true, 0));
    // Only a limited amount of trailing whitespace is held back.
    let mut view = Chunks::default();
    let mut client = Client::default();
    client.receive(view.next(&delta("a")));
    for _ in 0..200 {
        client.receive(view.next(&delta(" ")));
    }
    assert!(client.answer.len() > 100);
}
