//! Tests of `Chunks`.

use super::*;

fn event(seq: u64, event: Event) -> Envelope {
    Envelope { run_id: "r".to_owned(), root_run_id: "r".to_owned(), seq, ts: 0, event }
}

fn delta(text: &str) -> Envelope {
    event(1, Event::AnswerDelta { step: 1, text: text.to_owned(), is_certain: false })
}

fn response(text: &str) -> Envelope {
    let (text, usage, stop) = (text.to_owned(), Usage::default(), Stop::Answered);
    event(2, Event::Response { text, session_id: None, steps: 0, usage, stop, data: None })
}

/// A client that receives the chunks of an answer.
#[derive(Default)]
struct Client {
    answer: String,
    done: Option<String>,
}

impl Client {
    fn receive(&mut self, chunks: Vec<ChunkEvent>) {
        for ChunkEvent { chunk, .. } in chunks {
            match chunk {
                Chunk::Chunk { offset, content } => {
                    if offset == 0 {
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

#[test]
fn the_pieces_of_an_answer_are_the_answer() {
    let void = || event(1, Event::AnswerVoid { step: 1 });
    for (events, answer) in [
        (vec![delta("Four – "), delta("4."), response("Four – 4.")], "Four – 4."),
        (vec![response("Four")], "Four"),
        (vec![delta("half"), response("stopped: cancelled")], "stopped: cancelled"),
        (vec![delta("I look."), void(), delta("yes"), response("yes")], "yes"),
        (vec![delta("some text"), void(), response("")], ""),
    ] {
        let (mut view, mut client) = (Chunks::default(), Client::default());
        events.iter().for_each(|event| client.receive(view.next(event)));
        assert_eq!((client.answer.as_str(), client.done.as_deref()), (answer, Some(answer)));
    }
}

#[test]
fn a_call_and_a_retry_have_their_chunks() {
    let mut view = Chunks::default();
    let retry = |seq| {
        let error = "again".to_owned();
        event(seq, Event::Retry { step: 1, attempt: 1, error, after_ms: None })
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
    let void = event(1, Event::AnswerVoid { step: 1 });
    assert_eq!(offsets(view.next(&void)), [0]);
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
        names: Vec::new(),
    };
    let expected = Chunk::ToolCall {
        call: "1.1".to_owned(),
        name: "wat".to_owned(),
        arguments: vec!["a".to_owned()],
        names: Vec::new(),
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
}

#[test]
fn a_failed_run_has_an_error_and_then_done() {
    let chunks = Chunks::default().next(&event(1, Event::Error { message: "error: x".to_owned() }));
    let kinds: Vec<serde_json::Value> =
        chunks.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    assert_eq!((&kinds[0]["type"], &kinds[0]["fatal"]), (&"error".into(), &true.into()));
    assert_eq!((&kinds[1]["type"], &kinds[1]["stop"]), (&"done".into(), &Json::Null));
}
