//! Tests of the two dialects with function calls. The cases in `tests/functions/` contain calls as
//! models and servers write them.

use std::fmt::Write as _;

use proptest::prelude::*;
use wattle_machine::{
    Call, Completion, Dialect, Effect, Ending, Event, Execution, FunctionCall, Input, ModelAnswer,
    Offer, Param, ParamKind, ProgramFunction, Role, Setup, State, function_tools, step,
};

fn program(name: &str, params: &[(&str, ParamKind, Option<&str>)]) -> ProgramFunction {
    let param = |(name, kind, default): &(&str, ParamKind, Option<&str>)| Param {
        name: (*name).to_owned(),
        kind: *kind,
        format: None,
        description: "what it is".to_owned(),
        default: default.map(str::to_owned),
    };
    ProgramFunction {
        program: name.to_owned(),
        description: "Does it".to_owned(),
        params: params.iter().map(param).collect(),
        result: None,
        offer: if name == "kv_get" { Offer::Listed } else { Offer::Unlisted },
        exclusive: name == "alone",
        silent: name == "quiet",
        whole: name == "long",
        schema: None,
    }
}

pub(crate) fn programs() -> Vec<ProgramFunction> {
    use ParamKind::{Boolean, Integer, Text};
    vec![
        program("a.dotted", &[("x", Text, None)]),
        program("alone", &[]),
        program("done", &[("result", Text, None)]),
        program("file_read", &[("path", Text, None)]),
        program("hidden", &[("key", Text, None)]),
        program("kv_get", &[("key", Text, None)]),
        program("long", &[]),
        program("now", &[]),
        program("quiet", &[("x", Text, Some(""))]),
        program(
            "search_text",
            &[
                ("pattern", Text, None),
                ("max", Integer, Some("10")),
                ("deep", Boolean, Some("false")),
            ],
        ),
    ]
}

/// Starts a run and passes it an answer.
fn answered(dialect: Dialect, answer: ModelAnswer) -> (State, Vec<Effect>) {
    let setup = Setup { dialect, programs: programs().into(), ..Setup::default() };
    let (state, _) = step(State::new(setup), Input::Begin { message: "go".into() });
    step(state, Input::Answer(answer))
}

pub(crate) fn shown(call: &Call) -> String {
    match call {
        Call::Wat { body, args } => [format!("wat: {body}")]
            .into_iter()
            .chain(args.iter().cloned())
            .collect::<Vec<_>>()
            .join(" | "),
        Call::Catalog { name, args, .. } => {
            format!(
                "{name}({})",
                args.iter().map(|arg| format!("{arg:?}")).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Shows a call with the names of its arguments.
fn named(call: &Call) -> String {
    if call.names().is_empty() {
        return shown(call);
    }
    let arg = |(name, arg): (Option<&str>, &str)| {
        name.map(|name| format!("{name}: ")).unwrap_or_default() + &format!("{arg:?}")
    };
    format!("{}({})", call.label(), call.named_args().map(arg).collect::<Vec<_>>().join(", "))
}

fn read(effects: &[Effect], shown: fn(&Call) -> String) -> String {
    let refused = effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::ToolResult { output, .. }) => Some(format!("!! {output}")),
        _ => None,
    });
    match effects.last() {
        Some(Effect::Execute { calls, .. }) => {
            format!("=> {}", calls.iter().map(shown).collect::<Vec<_>>().join(" + "))
        }
        Some(Effect::Finish(Ending::Answered { text, data: None })) => format!("=> answer: {text}"),
        _ => refused.unwrap_or_else(|| format!("{effects:?}")),
    }
}

fn cases(text: &str) -> Vec<(String, String)> {
    let body = text.split_once("\n\n").expect("a preamble comes first").1;
    let mut cases = Vec::new();
    let (mut given, mut expected) = (String::new(), String::new());
    for line in body.lines().chain(["", "end"]) {
        let begins = line.starts_with("=> ") || line.starts_with("!! ");
        if begins {
            expected = line.to_owned();
        } else if !expected.is_empty() && !line.is_empty() && !expected.ends_with("\n\n") {
            let _ = write!(expected, "\n{line}");
        } else if !expected.is_empty() && line.is_empty() {
            cases.push((given.trim_end().to_owned(), std::mem::take(&mut expected)));
            given.clear();
        } else if !line.is_empty() || !given.is_empty() {
            given.push_str(line);
            given.push('\n');
        }
    }
    cases
}

#[test]
fn calls_in_the_text_are_read_in_both_dialects() {
    let mut wrong = String::new();
    let cases = cases(include_str!("../functions/leaked.txt"));
    assert!(cases.len() >= 30, "{} cases", cases.len());
    for (text, expected) in cases {
        for dialect in [Dialect::Native, Dialect::Text] {
            let (state, effects) =
                answered(dialect, ModelAnswer { text: text.clone(), ..ModelAnswer::default() });
            // The text dialect runs only one call per answer.
            let expected = if dialect == Dialect::Text {
                expected.split(" + ").next().unwrap()
            } else {
                &expected
            };
            let found = read(&effects, shown);
            if found != expected {
                writeln!(wrong, "{dialect:?}: {text}\n  {found}\n  expected {expected}").unwrap();
            }
            let open =
                state.conversation().iter().filter(|message| !message.calls.is_empty()).count();
            assert!(dialect == Dialect::Native || open == 0);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn arguments_with_one_possible_meaning_are_accepted() {
    let mut wrong = String::new();
    let cases = cases(include_str!("../functions/arguments.txt"));
    assert!(cases.len() >= 40, "{} cases", cases.len());
    for (given, expected) in cases {
        let (name, arguments) = given.split_once(' ').unwrap_or((&given, ""));
        for dialect in [Dialect::Native, Dialect::Text] {
            let (state, effects) = answered(dialect, calling(&[("c1", name, arguments)]));
            let found = read(&effects, named);
            let same = match expected.strip_prefix("!! ") {
                Some(part) => found.starts_with("!! ") && found.contains(part),
                None => found == expected,
            };
            if !same {
                writeln!(wrong, "{dialect:?}: {given}\n  {found}\n  expected {expected}").unwrap();
            }
            for call in state.conversation().iter().flat_map(|message| &message.calls) {
                assert!(
                    serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap().is_object(),
                    "{given}"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn calling(calls: &[(&str, &str, &str)]) -> ModelAnswer {
    let call = |(id, name, arguments): &(&str, &str, &str)| FunctionCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: (*arguments).into(),
    };
    ModelAnswer { calls: calls.iter().map(call).collect(), ..ModelAnswer::default() }
}

fn ran(result: &str) -> Execution {
    Execution::Ran(Completion { results: vec![result.to_owned()], ..Completion::default() })
}

/// Returns the ids and results of the calls.
fn results(state: &State) -> Vec<(String, String)> {
    let tools = state.conversation().iter().filter(|message| message.role == Role::Tool);
    tools.map(|message| (message.answers.clone().unwrap(), message.content.to_string())).collect()
}

#[test]
fn calls_of_one_turn_share_its_step_and_each_has_its_result_in_order() {
    let (state, effects) = answered(
        Dialect::Native,
        calling(&[
            ("a", "kv_get", "{\"key\":\"1\"}"),
            ("", "now", "{}"),
            ("a", "kv_get", "{oops"),
            ("d", "kv_get", "{\"key\":\"4\"}"),
        ]),
    );
    let Some(Effect::Execute { step: 1, calls }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(
        calls.iter().map(shown).collect::<Vec<_>>(),
        ["kv_get(\"1\")", "now()", "kv_get(\"4\")"]
    );
    let (state, effects) = step(state, Input::Executed(vec![ran("one"), ran("two"), ran("four")]));
    assert_eq!(state.steps(), 1);
    let numbers = effects.iter().filter_map(|effect| match effect {
        Effect::Emit(Event::ToolResult { step, call, success, .. }) => {
            Some((*step, *call, *success))
        }
        _ => None,
    });
    assert_eq!(
        numbers.collect::<Vec<_>>(),
        [(1, 1, true), (1, 2, true), (1, 3, false), (1, 4, true)]
    );
    let results = results(&state);
    let ids: Vec<&str> = results.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a", "c00010002", "c00010003", "d"], "every call has an id of its own");
    for ((_, result), part) in results.iter().zip(["one", "two", "not JSON", "four"]) {
        assert!(
            result.starts_with("[Observation bbbbbb (step 1)] Execution") && result.contains(part),
            "{result}"
        );
    }
    let said = state.conversation().iter().find(|message| !message.calls.is_empty()).unwrap();
    assert_eq!(said.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ids);
}

#[test]
fn an_exclusive_program_runs_alone_and_the_others_are_refused() {
    let calls = [("a", "kv_get", "{\"key\":\"1\"}"), ("b", "alone", "{}"), ("c", "alone", "{}")];
    let (state, effects) = answered(Dialect::Native, calling(&calls));
    let Some(Effect::Execute { calls, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(calls.iter().map(shown).collect::<Vec<_>>(), ["alone()"]);
    let (state, _) = step(state, Input::Executed(vec![ran("well")]));
    let results = results(&state);
    assert!(
        results[0].1.contains("not run: `alone` must be the only call of its turn"),
        "{results:?}"
    );
    assert!(results[1].1.ends_with("well") && results[2].1.contains("not run"), "{results:?}");
}

#[test]
fn results_of_a_silent_program_stay_out_of_the_conversation_and_its_failures_do_not() {
    let both = calling(&[("a", "quiet", "{}"), ("b", "now", "{}")]);
    let (state, _) = answered(Dialect::Native, both);
    let (state, effects) = step(state, Input::Executed(vec![ran("a secret"), ran("12:00")]));
    let results = results(&state);
    assert!(results[0].1.contains("(done;") && !results[0].1.contains("secret"), "{results:?}");
    assert!(format!("{effects:?}").contains("a secret"), "whoever watches sees it");
    let (state, _) = step(state, Input::Answer(calling(&[("c", "quiet", "{}")])));
    let refused = Execution::Refused { reason: "no such key".into() };
    let (state, _) = step(state, Input::Executed(vec![refused]));
    assert!(state.conversation().last().unwrap().content.contains("no such key"));
}

#[test]
fn results_of_a_program_that_is_shown_whole_are_not_truncated() {
    let text = "0123456789".repeat(600);
    for (name, is_whole) in [("long", true), ("now", false)] {
        let (state, _) = answered(Dialect::Native, calling(&[("a", name, "{}")]));
        let (state, _) = step(state, Input::Executed(vec![ran(&text)]));
        let results = results(&state);
        assert_eq!(results[0].1.contains(&text), is_whole, "{name}");
    }
}

#[test]
fn a_turn_whose_calls_are_all_silent_ends_the_run() {
    for dialect in [Dialect::Native, Dialect::Text] {
        let said = ModelAnswer { text: "Noted.".into(), ..calling(&[("a", "quiet", "{}")]) };
        let (state, _) = answered(dialect, said);
        let (state, effects) = step(state, Input::Executed(vec![ran("a secret")]));
        let ending = Ending::Answered { text: "Noted.".into(), data: None };
        assert_eq!(effects.last(), Some(&Effect::Finish(ending)), "{dialect:?}");
        assert!(!format!("{:?}", state.conversation()).contains("a secret"));
    }
}

#[test]
fn done_beside_other_calls_is_refused() {
    let (state, effects) = answered(
        Dialect::Native,
        calling(&[("a", "now", "{}"), ("b", "done", "{\"result\":\"12:00\"}")]),
    );
    assert!(matches!(effects.last(), Some(Effect::Execute { .. })));
    let (state, effects) = step(state, Input::Executed(vec![ran("13:00")]));
    assert!(
        results(&state)[1].1.contains("not accepted: read the results"),
        "{:?}",
        results(&state)
    );
    assert!(matches!(effects.last(), Some(Effect::Ask(_))));
    let (state, effects) =
        step(state, Input::Answer(calling(&[("c", "done", "{\"result\":\"13:00\"}")])));
    assert_eq!(
        effects.last(),
        Some(&Effect::Finish(Ending::Answered { text: "13:00".into(), data: None }))
    );
    let last = state.conversation().last().unwrap();
    assert_eq!((last.role, last.content.as_str(), last.calls.len()), (Role::Assistant, "13:00", 0));
}

#[test]
fn functions_have_names_and_schemas_that_endpoints_accept() {
    let listed = |program| ProgramFunction { offer: Offer::Listed, ..program };
    let all: Vec<ProgramFunction> = programs().into_iter().map(listed).collect();
    let tools = function_tools(&all);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "a_dotted",
            "alone",
            "file_read",
            "hidden",
            "kv_get",
            "long",
            "now",
            "quiet",
            "search_text",
            "wat",
            "fix",
            "done"
        ],
        "nothing else can be called"
    );
    let search = tools.iter().find(|tool| tool.name == "search_text").unwrap();
    assert_eq!(
        search.parameters.to_string(),
        r#"{"type":"object","properties":{"pattern":{"type":"string","description":"what it is"},"max":{"type":"integer","description":"what it is","default":10},"deep":{"type":"boolean","description":"what it is","default":false}},"required":["pattern"]}"#
    );
}

#[test]
fn a_program_without_a_function_of_its_own_is_recorded_as_a_call_of_catalog() {
    let tools = function_tools(&programs());
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["kv_get", "catalog", "wat", "fix", "done"]);
    let calls = [
        ("a", "kv_get", "{\"key\":\"1\"}"),
        ("b", "file_read", "{\"path\":\"a.txt\"}"),
        ("c", "catalog", "{\"name\":\"search_text\",\"arguments\":{\"pattern\":\"p\",\"max\":3}}"),
        ("d", "catalog", "{\"name\":\"no_such\",\"arguments\":[\"x\"]}"),
    ];
    let (state, effects) = answered(Dialect::Native, calling(&calls));
    let Some(Effect::Execute { calls, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(calls.len(), 4);
    let (state, _) = step(state, Input::Executed(vec![ran("x"); 4]));
    let called = state.conversation().iter().flat_map(|message| &message.calls);
    let called: Vec<String> =
        called.map(|call| format!("{} {}", call.name, call.arguments)).collect();
    assert_eq!(
        called,
        [
            r#"kv_get {"key":"1"}"#,
            r#"catalog {"name":"file_read","arguments":{"path":"a.txt"}}"#,
            r#"catalog {"name":"search_text","arguments":{"pattern":"p","max":"3"}}"#,
            r#"catalog {"name":"no_such","arguments":["x"]}"#,
        ]
    );
}

#[test]
fn without_functions_the_run_continues_in_the_text_dialect() {
    let setup = Setup {
        system: "native".into(),
        dialect: Dialect::Native,
        fallback: Some("text".into()),
        programs: programs().into(),
        ..Setup::default()
    };
    let (state, _) = step(State::new(setup.clone()), Input::Begin { message: "go".into() });
    let (state, _) = step(state, Input::Answer(calling(&[("a", "kv_get", "{\"key\":\"1\"}")])));
    let (state, _) = step(state, Input::Executed(vec![ran("one")]));
    let (state, effects) = step(state, Input::WithoutFunctions("no tools here".into()));
    let [Effect::Ask(ask)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((state.dialect(), ask.dialect, ask.step), (Dialect::Text, Dialect::Text, 2));
    let seen: Vec<(Role, &str)> =
        ask.messages.iter().map(|message| (message.role, message.content.as_str())).collect();
    assert_eq!(
        seen,
        [
            (Role::System, "text"),
            (Role::User, "go\n\n[Note bbbbbb] bbbbbb is the code of this run."),
            (Role::Assistant, "ToolCall::Catalog(\"kv_get\", key=\"1\")"),
            (Role::User, "[Observation bbbbbb (step 1)] Execution result:\none"),
        ]
    );
    assert!(
        ask.messages.iter().all(|message| message.calls.is_empty() && message.answers.is_none())
    );

    let (state, _) =
        step(State::new(Setup { fallback: None, ..setup }), Input::Begin { message: "go".into() });
    let (_, effects) = step(state, Input::WithoutFunctions("no tools here".into()));
    let message = "error: no tools here; set `dialect = \"text\"`".to_owned();
    assert_eq!(effects.last(), Some(&Effect::Finish(Ending::Failed { message })));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_call_has_a_result_with_its_id(
        calls in prop::collection::vec(
            (
                "[a-c]{0,1}",
                prop::sample::select(vec!["kv_get", "wat", "done", "alone", "", "x y", "quiet"]),
                ".{0,40}",
            ),
            0..20,
        ),
        text in prop::sample::select(vec![
            "",
            "<tool_call>",
            "{\"name\":",
            "why",
            "```json\n{",
            "[TOOL_CALLS][{}]",
            "<function=",
        ]),
        native in any::<bool>(),
    ) {
        let calls: Vec<(&str, &str, &str)> = calls
            .iter()
            .map(|(id, name, arguments)| (id.as_str(), *name, arguments.as_str()))
            .collect();
        let dialect = if native { Dialect::Native } else { Dialect::Text };
        let (mut state, effects) =
            answered(dialect, ModelAnswer { text: text.to_owned(), ..calling(&calls) });
        if let Some(Effect::Execute { calls, .. }) = effects.last() {
            prop_assert!(calls.len() <= 16);
            (state, _) = step(state, Input::Executed(calls.iter().map(|_| ran("x")).collect()));
        }
        let conversation = state.conversation();
        let called: Vec<&str> = conversation
            .iter()
            .flat_map(|message| &message.calls)
            .map(|call| call.id.as_str())
            .collect();
        let answered: Vec<&str> =
            conversation.iter().filter_map(|message| message.answers.as_deref()).collect();
        prop_assert_eq!(&called, &answered);
        let mut ids = called.clone();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), called.len());
    }
}

#[test]
fn a_megabyte_of_marks_is_read_in_linear_time() {
    for piece in [
        "<tool_call>",
        "{\"name\":",
        "<function=x>",
        "[TOOL_CALLS]",
        "{",
        "[",
        "```json\n",
        "<parameter=a>",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let (_, effects) =
            answered(Dialect::Native, ModelAnswer { text, ..ModelAnswer::default() });
        assert!(!effects.is_empty());
    }
}
