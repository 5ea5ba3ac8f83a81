//! Tests of the serialized form of events.

use wattle_machine::{Call, Envelope, Event, Source, Stop, Usage};

#[test]
fn each_event_has_its_type_and_fields() {
    let usage = Usage { prompt: 3, completion: 2, cached: 1, cost: None };
    let cases = [
        (
            Event::Thinking { step: 1, content: "hm".into() },
            r#"{"type":"thinking","step":1,"content":"hm"}"#,
        ),
        (Event::Delta { step: 1, text: "a".into() }, r#"{"type":"delta","step":1,"text":"a"}"#),
        (
            Event::ToolStart {
                step: 1,
                call: 1,
                label: "wat".into(),
                source: Source::Wat,
                description: "d".into(),
                body: Some("(nop)".into()),
                args: vec!["a".into()],
                names: Vec::new(),
            },
            r#"{"type":"tool_start","step":1,"call":1,"label":"wat","source":"wat","description":"d","body":"(nop)","args":["a"]}"#,
        ),
        (
            Event::ToolResult {
                step: 1,
                call: 1,
                source: Source::Catalog,
                success: false,
                output: "o".into(),
                exit_code: Some(6),
                dur_ms: 5,
                fuel: None,
                fixes: Vec::new(),
            },
            r#"{"type":"tool_result","step":1,"call":1,"source":"catalog","success":false,"output":"o","exit_code":6,"dur_ms":5,"fuel":null}"#,
        ),
        (
            Event::Retry { step: 2, attempt: 1, error: "e".into(), after_ms: None },
            r#"{"type":"retry","step":2,"attempt":1,"error":"e"}"#,
        ),
        (
            Event::Response {
                text: "t".into(),
                session_id: None,
                steps: 2,
                usage,
                stop: Stop::MaxSteps,
                data: None,
            },
            r#"{"type":"response","text":"t","session_id":null,"steps":2,"usage":{"prompt":3,"completion":2,"cached":1},"stop":"max_steps"}"#,
        ),
        (Event::Error { message: "error: m".into() }, r#"{"type":"error","message":"error: m"}"#),
    ];
    for (event, expected) in cases {
        assert_eq!(serde_json::to_string(&event).unwrap(), expected);
        let envelope = Envelope {
            run_id: "r".into(),
            root_run_id: "q".into(),
            seq: u64::MAX,
            ts: 1_700_000_000_000,
            event,
        };
        let written = serde_json::to_string(&envelope).unwrap();
        let head =
            r#"{"run_id":"r","root_run_id":"q","seq":18446744073709551615,"ts":1700000000000,"#;
        assert_eq!(written, format!("{head}{}", &expected[1..]));
        assert_eq!(serde_json::from_str::<Envelope>(&written).unwrap(), envelope);
    }
}

#[test]
fn usage_adds_up_without_overflow() {
    let most = Usage { prompt: u64::MAX, completion: 1, cached: 0, cost: None };
    assert_eq!(most + most, Usage { prompt: u64::MAX, completion: 2, cached: 0, cost: None });
}

#[test]
fn a_call_that_was_recorded_without_names_is_read() {
    let json = r#"{"source":"catalog","name":"now","args":["CET"]}"#;
    let call: Call = serde_json::from_str(json).unwrap();
    assert_eq!(call, Call::catalog("now", vec!["CET".into()]));
    assert_eq!(serde_json::to_string(&call).unwrap(), json);
    let named = r#"{"source":"catalog","name":"now","args":["CET"],"names":["zone"]}"#;
    let call: Call = serde_json::from_str(named).unwrap();
    assert_eq!(call.named_args().collect::<Vec<_>>(), [(Some("zone"), "CET")]);
}
