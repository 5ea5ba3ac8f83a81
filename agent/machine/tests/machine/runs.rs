//! Tests of whole runs: every scripted run in the data files is executed, and its effects are
//! compared with the expected ones. `UPDATE=1` updates the expected effects.
//!
//! A script is a list of inputs. Each input consists of `>>> kind` and a payload, and is followed
//! by `<<<` and its effects.

use std::fmt::Write as _;

use wattle_machine::{
    Effect, Execution, Input, Message, ModelAnswer, Role, Setup, State, Tally, Usage, step,
};

fn input(kind: &str, payload: &str) -> Input {
    match kind {
        "begin" => Input::Begin { message: payload.to_owned() },
        "answer" => {
            let usage = Usage { prompt: 100, completion: 10, cached: 50, cost: None };
            Input::Answer(ModelAnswer { text: payload.to_owned(), usage, ..ModelAnswer::default() })
        }
        "reply" => Input::Answer(serde_json::from_str(payload).expect("an answer with calls")),
        "without functions" => Input::WithoutFunctions(payload.to_owned()),
        "moderated" => Input::Moderated(serde_json::from_str(payload).expect("a verdict")),
        "spent" => Input::Spent(serde_json::from_str(payload).expect("tokens")),
        "failed" => Input::Failed(payload.to_owned()),
        "executed" => Input::Executed(
            serde_json::from_str::<Vec<Execution>>(payload).expect("reports of calls"),
        ),
        "recalled" => Input::Recalled(serde_json::from_str(payload).expect("a report of a call")),
        "contributed" => {
            Input::Contributed(serde_json::from_str(payload).expect("outcomes of programs"))
        }
        "valid" => Input::Validated(Ok(serde_json::from_str(payload).expect("a value"))),
        "invalid" => Input::Validated(Err(payload.lines().map(str::to_owned).collect())),
        "cancel" => Input::Cancel { reason: payload.to_owned() },
        "expired" => Input::Expired { limit_ms: payload.parse().expect("milliseconds") },
        _ => panic!("unknown input {kind}"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Ask(ask) => {
            let purpose = serde_json::to_string(&ask.purpose).unwrap();
            let mut shown = format!(
                "ask {} (step {}, attempt {})\n",
                purpose.trim_matches('"'),
                ask.step,
                ask.attempt
            );
            for Message { role, content, calls, answers, provider, .. } in &ask.messages {
                match role {
                    Role::System => writeln!(shown, "  system: {content}").unwrap(),
                    Role::User => write!(shown, "  user:\n{}", indented(content)).unwrap(),
                    Role::Assistant => {
                        write!(shown, "  assistant:\n{}", indented(content)).unwrap()
                    }
                    Role::Tool => {
                        let id = answers.as_deref().expect("the id of the call");
                        write!(shown, "  tool {id}:\n{}", indented(content)).unwrap();
                    }
                }
                if let Some(own) = provider {
                    writeln!(shown, "    fields of {}: {}", own.origin, own.fields).unwrap();
                }
                for call in calls {
                    writeln!(shown, "    {} {}({})", call.id, call.name, call.arguments).unwrap();
                }
            }
            shown
        }
        Effect::Execute { step, calls } => {
            format!("execute (step {step}) {}\n", serde_json::to_string(calls).unwrap())
        }
        Effect::Refuse { step, call, reason } => {
            format!("refuse (step {step}) {}: {reason}\n", serde_json::to_string(call).unwrap())
        }
        Effect::Done { step, call } => {
            format!("done (step {step}) {}\n", serde_json::to_string(call).unwrap())
        }
        Effect::Recall { step, call } => {
            format!("recall (step {step}) {}\n", serde_json::to_string(call).unwrap())
        }
        Effect::Contribute { step, calls } => {
            format!("contribute (step {step}) {}\n", serde_json::to_string(calls).unwrap())
        }
        Effect::Validate { text } => format!("validate {text}\n"),
        Effect::Moderate { message } => format!("moderate {message}\n"),
        Effect::Emit(event) => format!("emit {}\n", serde_json::to_string(event).unwrap()),
        Effect::Finish(ending) => format!("finish {}\n", serde_json::to_string(ending).unwrap()),
    }
}

fn play(script: &str) -> String {
    let mut transcript = String::new();
    let mut parts = script.split(">>> ");
    transcript.push_str(parts.next().unwrap_or_default());
    let mut state = None;
    let mut tally = Tally::new(&Setup::default());
    for part in parts {
        let (kind, rest) = part.split_once('\n').expect("an input has a line of its own");
        let payload = rest.split("\n<<<").next().unwrap_or_default().trim_end_matches('\n');
        write!(transcript, ">>> {kind}\n{payload}\n").unwrap();
        if kind == "setup" {
            let setup = serde_json::from_str::<Setup>(payload).expect("a setup");
            tally = Tally::new(&setup);
            state = Some(State::new(setup));
            transcript.push('\n');
            continue;
        }
        // A state can be stored and restored between any two inputs.
        let stored = serde_json::to_string(&state.take().expect("a setup comes first")).unwrap();
        let input = input(kind, payload);
        let (next, effects) = step(serde_json::from_str(&stored).unwrap(), input.clone());
        // Only a result that the run waits for counts.
        if !effects.is_empty() || matches!(input, Input::Spent(_)) {
            count(&mut tally, &input, &effects, &next);
        }
        state = Some(next);
        writeln!(transcript, "<<<\n{}", effects.iter().map(show).collect::<String>()).unwrap();
    }
    transcript.trim_end().to_owned() + "\n"
}

/// Counts a turn as a host does, and compares the figures with those of the state.
fn count(tally: &mut Tally, input: &Input, effects: &[Effect], state: &State) {
    tally.input(Usage::default(), input);
    for effect in effects {
        if let Effect::Emit(event) = effect {
            tally.event(event);
        }
    }
    tally.end_turn();
    assert_eq!((tally.steps(), tally.usage()), (state.steps(), state.usage()), "{effects:?}");
    assert_eq!((tally.kept(), tally.artifacts()), (state.kept(), state.artifacts()));
    assert_eq!((tally.dialect(), tally.programs()), (state.dialect(), state.programs()));
    assert_eq!(tally.added_tools(), state.added_tools());
    assert_eq!(tally.added_delegates(), state.added_delegates());
}

#[test]
fn every_run_has_the_expected_effects() {
    let files = wattle_cases::files("tests/runs", "txt");
    assert!(files.len() >= 10, "only {} runs were found", files.len());
    let mut comparison = wattle_cases::Comparison::new();
    for file in files {
        comparison.add(&file, &play(&wattle_cases::read(&file)));
    }
    comparison.finish();
}
